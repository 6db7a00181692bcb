"""What skep takes from outside, one module each; foreign errors become our own here, with a title and a hint."""
