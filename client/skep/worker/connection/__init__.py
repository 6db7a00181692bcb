"""Access to the swarm: hivemind's DHT and p2pd started, watched and guarded; who may enter, and who can be dialled."""
