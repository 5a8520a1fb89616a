"""What the tests and the diagnosis can do, measured: `make prove` writes `docs/proof.md`."""
