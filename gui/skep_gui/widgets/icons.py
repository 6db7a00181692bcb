"""The mark as QIcon, drawn from its SVG at every requested size. Drawn pixmaps are cached."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QIcon, QImage, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from skep_gui.widgets.theme import LIGHT
from skep_gui.words import mark
from skep_gui.words.mark import Look

SIZES: Final = (16, 22, 24, 32, 48, 64)


@lru_cache(maxsize=64)
def panel(look: Look, colour: str) -> QIcon:
    return _icon(mark.panel(look, colour), SIZES)


@lru_cache(maxsize=1)
def app() -> QIcon:
    return _icon(mark.app(LIGHT.fill, mark.SHADE, mark.DOOR), (*SIZES, 128, 256))


def image(svg: str, size: int) -> QImage:
    """The SVG at `size` x `size` pixels on a transparent background."""
    drawn = QImage(size, size, QImage.Format.Format_ARGB32_Premultiplied)
    drawn.fill(Qt.GlobalColor.transparent)
    painter = QPainter(drawn)
    QSvgRenderer(svg.encode()).render(painter, QRectF(0, 0, size, size))
    painter.end()
    return drawn


def _icon(svg: str, sizes: tuple[int, ...]) -> QIcon:
    icon = QIcon()
    for size in sizes:
        icon.addPixmap(QPixmap.fromImage(image(svg, size)))
    return icon
