from apexrl.runs.errors import UserFacingError


def test_the_parts_are_sentences():
    assert str(UserFacingError("lr is -1.", "it must be positive", "correct it")) == (
        "lr is -1. It must be positive. Correct it."
    )
    assert str(UserFacingError("no name 'PPo'", hint="did you mean PPO?")) == "no name 'PPo'. Did you mean PPO?"
