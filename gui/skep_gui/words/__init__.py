"""The texts, figures and rows that the pages show of a snapshot, without Qt."""
