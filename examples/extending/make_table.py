"""Write a table of SQLite to read: scores.db."""

import random
import sqlite3

random.seed(1)
with sqlite3.connect("scores.db") as database:
    database.execute("CREATE TABLE scores (id TEXT, time INTEGER, score REAL, label INTEGER)")
    for number in range(12_000):
        score = random.random()
        row = (f"a{number}", 1000 * number, score, int(random.random() < score**2))
        database.execute("INSERT INTO scores VALUES (?, ?, ?, ?)", row)
