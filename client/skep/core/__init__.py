"""The pure core of skep: frozen dataclasses and functions, without clock, disk, threads or network."""
