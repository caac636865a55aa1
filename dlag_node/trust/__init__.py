"""Who may come in: key pairs and their files, the gate that asks for them, and who was refused."""
