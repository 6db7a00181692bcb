"""The settings themselves, in a file for each group; `declarations` names the files."""
