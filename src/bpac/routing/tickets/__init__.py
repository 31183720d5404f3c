"""Tickets: the order in which queries arrive (MATH section 12).

``arrivals.py`` has the rules, ``ticket.py`` is one ticket, ``tickets.py`` gives them out, ``by_arrival.py`` shows the
rounds to the bettor in this order.
"""
