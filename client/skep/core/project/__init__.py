"""Projects: manifests, training data, the fit check and invitations."""
