"""The pure heart of skep: frozen dataclasses and functions, no clock, disk, threads or network."""
