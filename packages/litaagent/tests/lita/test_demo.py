"""``lita demo`` runs end to end at its smallest scale."""


def test_demo_walks_from_a_tournament_to_the_trained_agent_in_the_arena(lita, tmp_path):
    small = ["--configs", "1", "--days", "10", "--epochs", "1", "--updates", "1", "--worlds", "1"]
    printed = lita(tmp_path, "demo", *small, "--output-dir", "out")
    for layer in ("l2", "l3"):
        assert list((tmp_path / "out/online/weights").glob(f"v*/{layer}.npz"))
    assert (tmp_path / "out/offline/weights/l2.npz").exists()
    text = (tmp_path / "out/report.html").read_text(encoding="utf-8")
    assert (tmp_path / "out/report.html").as_uri() in printed
    for part in (
        "LitaAgentHRL",
        "Ranking by the official",
        "Supply chain",
        "Unit price, round by round",
        "Decisions of day",
        "HorizonAware",
        "Training in the league",
        "no gate, the newest weights play",
    ):
        assert part in text
    assert [f"{number} of 5." in printed for number in range(1, 6)] == [True] * 5
    assert "one to three minutes" in printed
    assert text.count('<li><a href="#part-') == text.count('<section class="part" id="part-') >= 6
