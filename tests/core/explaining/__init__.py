"""What plugins explain with: names, labels, steps and owners."""
