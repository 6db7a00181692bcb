"""Files in skep's home: settings, keys, ledger, projects, shards, logs."""
