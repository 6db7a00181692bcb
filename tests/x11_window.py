"""A plain X11 window for tests: prints "open", then follows "full" and "normal" from its input until that ends.

Run as a script: x11_window.py [process id to claim]
"""

import os
import sys

from Xlib import X, Xatom
from Xlib.display import Display
from Xlib.protocol import event


def main():
    display = Display()
    root = display.screen().root
    window = root.create_window(20, 20, 200, 150, 0, display.screen().root_depth)
    pid = int(sys.argv[1]) if sys.argv[1:] else os.getpid()
    window.change_property(display.get_atom("_NET_WM_PID"), Xatom.CARDINAL, 32, [pid])
    window.change_attributes(event_mask=X.StructureNotifyMask)
    window.map()
    while display.next_event().type != X.MapNotify:
        pass
    say("open")
    for line in sys.stdin:
        data = [int(line.strip() == "full"), display.get_atom("_NET_WM_STATE_FULLSCREEN"), 0, 1, 0]
        change = event.ClientMessage(window=window, client_type=display.get_atom("_NET_WM_STATE"), data=(32, data))
        root.send_event(change, event_mask=X.SubstructureRedirectMask | X.SubstructureNotifyMask)
        display.sync()
        say(line.strip())


def say(word):
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
