"""What outlives a process: settings, Postgres, and each user's records."""
