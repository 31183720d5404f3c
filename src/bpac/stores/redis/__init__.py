"""Games that several gateways share, kept in Redis or Valkey: one order, one published threshold per game.

1. A *replica* is one gateway process. What happens there (a request arrives, is decided or withdrawn, gets its outcome)
   is sent to Redis as one script per turn of the event loop (``lua/batch.lua``), all requests of that turn together.
2. The script gives out tickets and steps, so there is one order for all replicas, and appends what happened to the
   *inbox* of the game. It remembers the last reply of each replica: a call that is repeated changes nothing, and a
   server that has lost what it acknowledged is found (``messages.py``).
3. A decision follows from the ticket, the scores and the coin of its step (``routing/recorded_terms.py``). The terms of
   a ticket are those published when its request arrived, and stand in the inbox with the decision. Nothing is served
   before the script has answered.
4. One replica at a time is the *folder* of a game (``folder.py``). It turns the inbox into the journal, entry by entry
   as a single gateway would have written it (``fold.py``), and publishes entries, threshold, rate and snapshot in one
   script that checks its fencing token and the last event it has seen. Whoever lost the lease can publish nothing.
5. Leases and the death of replicas are judged by counters that stand still, on each replica's own monotonic clock. No
   clock of Redis or of another machine matters.
6. A replica that dies, or that Redis could not be reached from, cuts off the tickets under way, as a crash does for one
   gateway: the earliest open ticket is charged as a loss of 1 (MATH section 12).
"""
