"""One setting as a row of a form: label, a control for its kind, and a button that restores the default."""

from __future__ import annotations

from PySide6.QtCore import QLocale, Qt, Signal
from PySide6.QtWidgets import QBoxLayout, QCheckBox, QComboBox, QDoubleSpinBox, QHBoxLayout, QLineEdit, QSlider, QWidget

from skep.core.errors import SettingsError
from skep.core.settings import settings as declared
from skep.core.settings.setting import Kind, Value
from skep_gui.widgets.parts import ChoiceBox, button, column, label
from skep_gui.words.settings import Choices, Row, SettingsForm
from skep_gui.words.speaker import filled

CONTROL_WIDTH = 260


class Number(QDoubleSpinBox):
    """A number field without trailing zeros."""

    def __init__(self) -> None:
        super().__init__()
        written = QLocale()
        written.setNumberOptions(QLocale.NumberOption.OmitGroupSeparator)
        self.setLocale(written)
        self.lineEdit().setTextMargins(8, 0, 8, 0)  # padding from a style sheet has no effect on it
        self.setKeyboardTracking(False)

    def textFromValue(self, value: float) -> str:
        shortest = QLocale.FloatingPointPrecisionOption.FloatingPointShortest.value
        return self.locale().toString(value, "f", shortest)


class SettingRow(QWidget):
    changed = Signal(str, object)
    """Key and validated value."""

    def __init__(self, shown: Row, words: SettingsForm, *, upright: bool = False) -> None:
        """`upright` puts the control below the label, for rows side by side."""
        super().__init__()
        self.row, self._words = shown, words
        self._number_shown = 0.0
        setting = shown.setting
        self._value = label("", wrap=False)
        self.control = self._make_control(shown)
        self.control.setAccessibleName(shown.label)
        self.control.setAccessibleDescription(f"{shown.help} {shown.range}")
        self.reset = button(self.tr("Reset"), "flat", lambda: self.changed.emit(setting.key, setting.default))
        self.reset.setAccessibleName(filled(self.tr("Reset %1"), shown.label))
        self.reset.setToolTip(filled(self.tr("Back to %1"), shown.default))
        self.wrong = label("", tone="problem")
        self.wrong.hide()
        self._lay_out(shown, upright=upright)
        self.setEnabled(not shown.unavailable)
        self.show_row(shown)

    def _lay_out(self, shown: Row, *, upright: bool) -> None:
        named = label(shown.label)
        named.setBuddy(self.control)  # on Linux, screen readers take a combo box's name only from its buddy
        texts = column(named, label(shown.help, "soft"), spacing=2)
        if shown.unavailable:
            texts.addWidget(label(shown.unavailable, "soft"))
        texts.addWidget(self.wrong)
        side = QWidget()
        if not upright:
            side.setFixedWidth(CONTROL_WIDTH)
        controls = QHBoxLayout(side)
        controls.setContentsMargins(0, 0, 0, 0)
        for each in (self.control, self._value, self.reset):
            controls.addWidget(each, 1 if each is self.control else 0, Qt.AlignmentFlag.AlignTop)
        policy = self.reset.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.reset.setSizePolicy(policy)
        across = QBoxLayout(QBoxLayout.Direction.TopToBottom if upright else QBoxLayout.Direction.LeftToRight, self)
        across.setContentsMargins(0, 4, 0, 4)
        across.setSpacing(8 if upright else 16)
        across.addLayout(texts, 1)
        across.addWidget(side)

    def _make_control(self, shown: Row) -> QWidget:
        match shown.setting.kind:
            case Kind.YES_NO:
                return self._check()
            case Kind.CHOICE:
                return self._combo()
            case Kind.PERCENT:
                return self._slider(shown)
            case Kind.WHOLE | Kind.NUMBER:
                return self._number(shown)
            case Kind.TEXT:
                return self._combo() if shown.choices else self._text(shown)

    def _check(self) -> QCheckBox:
        made = QCheckBox(self.tr("On"))
        made.clicked.connect(self._offer)
        return made

    def _combo(self) -> QComboBox:
        made = ChoiceBox()
        made.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        made.activated.connect(lambda place: self._offer(str(made.itemData(place))))
        return made

    def _slider(self, shown: Row) -> QSlider:
        value = self._value
        made = QSlider(Qt.Orientation.Horizontal)
        made.setRange(round(shown.setting.minimum * 100), round(shown.setting.maximum * 100))
        made.setSingleStep(5)
        made.setPageStep(10)
        value.setMinimumWidth(48)
        value.setFixedHeight(26)
        value.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        made.valueChanged.connect(lambda percent: value.setText(self._words.show(shown.setting, percent / 100)))
        # a drag would save at each pixel: it is saved on release, key presses immediately
        made.setTracking(True)
        made.sliderReleased.connect(lambda: self._offer(made.value() / 100))
        made.actionTriggered.connect(
            lambda _: None if made.isSliderDown() else self._offer(made.sliderPosition() / 100)
        )
        return made

    def _number(self, shown: Row) -> Number:
        setting = shown.setting
        made = Number()
        made.setDecimals(0 if setting.kind is Kind.WHOLE else 1)
        made.setRange(0.0 if setting.zero else setting.minimum, setting.maximum)
        made.setSuffix(f" {setting.unit}" if setting.unit else "")
        if setting.zero:
            made.setSpecialValueText(shown.zero)
        made.editingFinished.connect(lambda: self._offer_number(made.value()))
        return made

    def _offer_number(self, value: float) -> None:
        """Emit it if the user has changed it: one with more decimals, set elsewhere, is not rounded when the field is left."""
        if value != self._number_shown:
            self._number_shown = value
            self._offer(value)

    def _text(self, shown: Row) -> QLineEdit:
        made = QLineEdit()
        made.setPlaceholderText(shown.empty)
        made.editingFinished.connect(lambda: self._offer(made.text().strip()))
        return made

    def _offer(self, value: Value) -> None:
        """Emit a new value if it is valid, otherwise show its error."""
        setting = self.row.setting
        if setting.kind is Kind.WHOLE and isinstance(value, float):
            value = round(value)
        try:
            checked = declared.check(setting.key, value)
        except SettingsError as error:
            self.wrong.setText(self._words.tongue.told(error.problem))
            self.wrong.show()
            return
        self.wrong.hide()
        if checked != self.row.value:
            self.changed.emit(setting.key, checked)

    def show_row(self, shown: Row) -> None:
        """Show the current value, unless the user is editing it."""
        self.row = shown
        self.reset.setVisible(shown.changed and not shown.unavailable)
        control, value = self.control, shown.value
        if isinstance(control, QSlider):
            if not control.isSliderDown():
                control.setValue(round(float(value) * 100))
                self._value.setText(shown.shown)
        elif control.hasFocus() and isinstance(control, QLineEdit | QDoubleSpinBox):
            return
        elif isinstance(control, QCheckBox):
            control.setChecked(bool(value))
        elif isinstance(control, QComboBox):
            fill(control, shown.choices)
            control.setCurrentIndex(control.findData(str(value)))
        elif isinstance(control, QDoubleSpinBox):
            control.setValue(float(value))
            self._number_shown = control.value()
        elif isinstance(control, QLineEdit):
            control.setText(str(value))


def fill(box: QComboBox, choices: Choices) -> None:
    """Set the choices, if they changed."""
    if choices != tuple((box.itemData(place), box.itemText(place)) for place in range(box.count())):
        box.clear()
        for value, word in choices:
            box.addItem(word, value)
