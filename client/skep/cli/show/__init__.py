"""What the terminal shows: snapshots, events, tables, colours."""
