"""What Weft chooses for calls: `weft plan` asks it before, `weft learned` reads what it kept."""
