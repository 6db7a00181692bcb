"""What every ports.SettingsStore and ports.Pauses does; subclass with a `settings` or `pauses` fixture."""

from skep.core.settings.settings import DEFAULTS


class SettingsContract:
    def test_what_was_never_set_has_its_default(self, settings):
        assert settings.load() == dict(DEFAULTS)

    def test_what_was_saved_is_loaded_and_the_rest_stays(self, settings):
        settings.save({"compute.share_away": 0.3, "compute.device": "cpu"})
        settings.save({"compute.share_away": 0.45, "network.port": 31_337})
        expected = {"compute.share_away": 0.45, "compute.device": "cpu", "network.port": 31_337}
        assert settings.load() == DEFAULTS | expected

    def test_saving_nothing_changes_nothing(self, settings):
        settings.save({})
        assert settings.load() == dict(DEFAULTS)

    def test_what_was_loaded_is_the_callers_own(self, settings):
        settings.load()["compute.threads"] = 99
        assert settings.load() == dict(DEFAULTS)


class PausesContract:
    def test_at_first_there_is_no_pause(self, pauses):
        assert pauses.load() == (False, None)

    def test_a_pause_with_an_end_is_remembered(self, pauses):
        pauses.save(paused=True, until=1_800_000_000.5)
        assert pauses.load() == (True, 1_800_000_000.5)

    def test_a_pause_without_an_end_is_remembered(self, pauses):
        pauses.save(paused=True, until=1.0)
        pauses.save(paused=True, until=None)
        assert pauses.load() == (True, None)

    def test_an_ended_pause_is_forgotten(self, pauses):
        pauses.save(paused=True, until=1.0)
        for _ in range(2):
            pauses.save(paused=False, until=5.0)
            assert pauses.load() == (False, None)
