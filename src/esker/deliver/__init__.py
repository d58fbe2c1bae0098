"""Tells others what changed: consumers read the change log and deliver it to targets."""
