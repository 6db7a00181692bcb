"""skep lends this computer's idle GPU to a named, open training collaboration."""

__version__ = "0.1.0"
