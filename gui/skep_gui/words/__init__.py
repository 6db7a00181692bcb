"""From a snapshot to words, figures and rows, without Qt."""
