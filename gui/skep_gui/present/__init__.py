"""From a Snapshot to words, icons and rows, without Qt: pure functions that are tested in milliseconds.

It must not know a widget, do anything, or ask a clock: the time comes in as an argument.
"""
