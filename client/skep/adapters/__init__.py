"""One file per outside thing; foreign errors become our own here, with a title and a hint."""
