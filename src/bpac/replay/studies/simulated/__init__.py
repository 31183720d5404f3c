"""Studies on simulated streams: drift, attackers, load, replicas, the stall."""
