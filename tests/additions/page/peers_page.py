"""A page of its own file."""

from PySide6.QtCore import Signal

from skep_gui.pages.page_kind import PageKind
from skep_gui.widgets.parts import Page, button, label


class PeersPage(Page):
    paused = Signal(object)

    def __init__(self):
        super().__init__("Peers")
        self.count = label("")
        self.pause = button("Pause")
        self.pause.clicked.connect(lambda: self.paused.emit(None))
        self.body.addWidget(self.count)
        self.body.addWidget(self.pause)


def _connect(page, requests):
    page.paused.connect(requests.pause)


def _show(page, snapshot, _history, _now):
    page.count.setText("no peers" if snapshot.progress is None else f"{snapshot.progress.peers} peers")


PAGE = PageKind(lambda _voice: PeersPage(), _connect, _show)
