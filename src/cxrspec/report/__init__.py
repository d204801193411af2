"""Pictures and tables of what the registry holds; they compute no score."""
