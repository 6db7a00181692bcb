"""What every ports.SecretStore does; subclass with a `secrets` fixture."""


class SecretsContract:
    def test_what_was_never_put_is_none(self, secrets):
        assert secrets.get("nothing") is None

    def test_what_was_put_is_given_back(self, secrets):
        secrets.put("one", "first")
        secrets.put("another", "ünï ☂ second\n")
        assert (secrets.get("one"), secrets.get("another")) == ("first", "ünï ☂ second\n")

    def test_a_later_secret_takes_the_place_of_an_earlier_one(self, secrets):
        secrets.put("one", "first")
        secrets.put("one", "second")
        assert secrets.get("one") == "second"

    def test_what_was_deleted_is_gone_and_nothing_else(self, secrets):
        secrets.put("one", "first")
        secrets.put("another", "second")
        secrets.delete("one")
        secrets.delete("one")
        assert (secrets.get("one"), secrets.get("another")) == (None, "second")

    def test_a_secret_as_long_as_an_invitation_is_kept_whole(self, secrets):
        secrets.put("long", "x" * 4096)
        assert secrets.get("long") == "x" * 4096
