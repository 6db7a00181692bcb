"""What recipes share and what needs torch when it is imported: a recipe's file imports these inside functions only."""
