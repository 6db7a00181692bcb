"""A page in its own file."""

from PySide6.QtCore import Signal

from skep_gui.pages.registry import PageKind
from skep_gui.widgets.parts import Page, button, label


class PeersPage(Page):
    paused = Signal(object)

    def __init__(self, _translation):
        super().__init__("Peers")
        self.count = label("")
        self.pause = button("Pause", clicked=lambda: self.paused.emit(None))
        self.add(self.count, self.pause)

    def connect_to(self, requests):
        self.paused.connect(requests.pause)

    def show_snapshot(self, snapshot, _history, _now):
        self.count.setText("no peers" if snapshot.progress is None else f"{snapshot.progress.peers} peers")


PAGE = PageKind(PeersPage, PeersPage.connect_to, PeersPage.show_snapshot)
