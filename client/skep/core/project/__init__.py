"""What a project is: its manifest, its data, how it fits, who is invited."""
