"""What skep keeps in its home: settings, keys, ledger, projects, shards, logs."""
