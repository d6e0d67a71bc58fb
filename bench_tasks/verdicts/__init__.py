"""What a recording says of an episode: its verdict, and what else can be derived."""
