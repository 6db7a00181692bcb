"""Forward and backward passes, the training loop, and how it is throttled."""
