"""The sensors of the person at this computer: input, locked screen, full-screen programs, calls and films.

They learn how long ago the last input was, never what it was: no keys, no titles, no contents of windows.
"""
