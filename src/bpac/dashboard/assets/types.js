// The JSON document that the page reads, as types for all other modules. document.py in this package writes a game, the
// gateway and `bpac replay --html` the rest; a test compares the names here with those of real documents.

/** @typedef {"safe" | "warming" | "watch" | "stopped" | "broken"} Level */
/** @typedef {"yes" | "not_yet" | "no"} SwitchAnswer */
/** @typedef {"kept" | "open" | "resolved" | "refused" | "forfeited"} DecisionState */

/**
 * @typedef {object} VerdictText
 * @property {Level} level
 * @property {string} text one line, which starts with the name of the level or of the trouble
 * @property {string} detail what it rests on, and what to do
 */

/**
 * Bounds on the loss served so far.
 * @typedef {object} Certificate
 * @property {number} rounds
 * @property {number} lower
 * @property {number} upper
 * @property {number} confidence of each of the bounds
 * @property {number} average_upper per request
 * @property {number | null} [best_average_upper] what it would be if its best rate had been known in advance
 */

/**
 * @typedef {object} Alarm
 * @property {number} level
 * @property {number} limit where the threshold is reset
 * @property {number} careful from where on more drafts are audited
 */

/**
 * Requests of a kind, by reason.
 * @typedef {object} Unscored
 * @property {number} requests
 * @property {number} share
 * @property {Record<string, number>} reasons
 */

/**
 * Tokens of all calls of a model.
 * @typedef {object} Usage
 * @property {number} prompt_tokens
 * @property {number} cached_tokens part of the prompt tokens
 * @property {number} completion_tokens
 * @property {number} estimated_tokens part of the prompt and completion tokens
 */

/**
 * Tokens and money. A gateway estimates and so knows bounds; a table knows the tokens of every answer.
 * @typedef {object} Savings
 * @property {number} draft_tokens
 * @property {number} expert_tokens
 * @property {number} judge_tokens
 * @property {number} always_tokens
 * @property {number} tokens_saved
 * @property {number} [tokens_saved_at_least]
 * @property {number | null} [tokens_saved_at_most]
 * @property {number | null} [longest_answer_assumed]
 * @property {number} [confidence]
 * @property {number | null} [share_saved] of what always asking the expert would have generated
 * @property {number | null} [share_saved_at_least]
 * @property {number | null} [share_saved_at_most]
 * @property {Record<string, Usage>} [usage] by draft, expert and judge
 * @property {number} [prompts_unknown]
 * @property {number} [money_saved] only where prices are configured
 * @property {number} [money_saved_at_least]
 * @property {number | null} [money_saved_at_most]
 * @property {number | null} [money_share_saved] of what always asking the expert would have cost
 * @property {number | null} [money_share_saved_at_least]
 * @property {number | null} [money_share_saved_at_most]
 * @property {number} [money_spent]
 * @property {number} [always_money]
 * @property {"bill" | "output"} [money_covers] whether prompts are priced, too
 * @property {string} [currency]
 * @property {number | null} [longest_prompt_assumed]
 * @property {Followed} [followed] only where sessions are sticky
 */

/** @typedef {"request" | "episode"} Unit what a round is */

/**
 * Later requests of episodes, where sessions are sticky; they are in none of the other sums.
 * @typedef {object} Followed
 * @property {number} requests
 * @property {number} by_draft
 * @property {number} by_expert
 * @property {Usage} draft
 * @property {Usage} expert
 * @property {number} expert_tokens_spared an estimate
 * @property {number} [money_spent] only where prices are configured
 */

/**
 * Sticky sessions.
 * @typedef {object} Sessions
 * @property {string} sticky_by
 * @property {number} open
 * @property {number} forgotten
 */

/**
 * Whether the new model may replace the old one.
 * @typedef {object} SwitchVerdict
 * @property {SwitchAnswer} answer
 * @property {string} text
 * @property {number} epsilon
 * @property {number} alpha
 * @property {number} allowed the mean loss that the limit allows while audits go on
 * @property {number | null} estimate
 * @property {number} at_least
 * @property {number} at_most
 * @property {number} confidence of each bound
 * @property {number} rounds
 * @property {number} audits
 * @property {number} unknown
 * @property {number | null} more
 * @property {number} epoch
 */

/**
 * Points over the requests of a game, by column.
 * @typedef {object} Series
 * @property {number[]} step
 * @property {number[]} at unix seconds; 0 if unknown
 * @property {number[]} threshold
 * @property {number[]} expert_calls
 * @property {number[]} average_upper
 * @property {number[]} spent_tokens
 * @property {number[]} always_tokens
 * @property {number[]} epoch
 * @property {number[]} [served_loss] the actual loss, which only a replay knows
 */

/**
 * @typedef {object} GameEvent
 * @property {number} step
 * @property {number} at
 * @property {"epoch" | "opened" | "closed"} kind
 * @property {string} text
 */

/**
 * @typedef {object} WealthCurve
 * @property {number[]} threshold
 * @property {number[]} log_wealth
 * @property {number} goal the log-wealth that certifies a threshold
 */

/**
 * @typedef {object} Histogram
 * @property {number[]} edges
 * @property {number[]} kept
 * @property {number[]} called
 */

/**
 * @typedef {object} WhatIfRow
 * @property {number} epsilon
 * @property {number} expert_call_rate
 * @property {number} low
 * @property {number} high
 */

/**
 * Durations in seconds.
 * @typedef {object} Stage
 * @property {string} stage
 * @property {number} count
 * @property {number} mean
 * @property {number} p50
 * @property {number} p90
 * @property {number} p99
 */

/**
 * A score that competes, where scores are learned: the first is the route's own.
 *
 * @typedef {object} ScoreStanding
 * @property {number} score
 * @property {number} share
 * @property {number} threshold
 * @property {number} accepted
 * @property {boolean} in_force
 * @property {number} since_step
 * @property {number | null} rounds
 * @property {number | null} estimated_gain
 * @property {boolean} shared
 * @property {boolean} retired
 */

/**
 * @typedef {object} CascadeModel
 * @property {number} stage
 * @property {string} model
 * @property {number} asked
 * @property {number} answered
 * @property {number} share
 * @property {number} call_price
 */

/**
 * @typedef {object} Game
 * @property {number} game
 * @property {string} route
 * @property {string} segment
 * @property {string} policy
 * @property {string | null} memory
 * @property {"serve" | "shadow"} explore
 * @property {string | null} score
 * @property {ScoreStanding[]} scores
 * @property {string | null} loss
 * @property {number} epsilon
 * @property {number} alpha
 * @property {number} steps
 * @property {number} threshold
 * @property {number} expert_calls
 * @property {number | null} expert_call_rate
 * @property {number} owed
 * @property {Record<string, number>} forfeits
 * @property {number} epoch
 * @property {Alarm | null} alarm
 * @property {number | null} doubt
 * @property {number} forfeit_share
 * @property {number} refused
 * @property {Unscored} refusals requests that only the expert refused; their share is that of the expert calls
 * @property {number} withdrawn
 * @property {number | null} exploration_rate probability with which accepted drafts are audited now
 * @property {number} audit_price what an audit costs now, relative to the average
 * @property {boolean} expert_busy whether audits are made at the least rate because the expert is busy
 * @property {number} expected_rounds
 * @property {Certificate} certificate
 * @property {"warming_up" | "routing" | "not_routing" | "alarmed"} state
 * @property {Unscored} unscored
 * @property {number} unscored_cost estimated tokens that these requests would have saved
 * @property {Record<string, string>} remedies by cause or reason
 * @property {Savings | null} savings
 * @property {VerdictText} verdict
 * @property {number | null} clean_rounds_needed
 * @property {GameEvent[]} events
 * @property {Stage[]} latency
 * @property {CascadeModel[]} [stages] the models of a cascade
 * @property {Unit} unit what a round is
 * @property {string | null} about what the rounds are about, where callers ask their models themselves
 * @property {Sessions | null} sessions only of a running gateway whose sessions are sticky
 * @property {SwitchVerdict | null} switch only of a game that asks whether a model may replace another
 * @property {Series | null} series
 * @property {WealthCurve | null} wealth
 * @property {Histogram | null} uncertainty
 * @property {WhatIfRow[] | null} what_if
 * @property {number} [served_loss] the actual loss, which only a replay knows
 */

/**
 * @typedef {object} LostJournal
 * @property {number} game
 * @property {number} entries
 * @property {number} acknowledged
 * @property {string} head
 * @property {string} text
 * @property {string | null} route
 * @property {string} segment
 * @property {string} now
 */

/**
 * @typedef {object} LostJournals
 * @property {number} count
 * @property {LostJournal[]} journals
 * @property {string} cost
 * @property {string} remedy
 */

/**
 * @typedef {object} RefusedReason
 * @property {string} reason
 * @property {number} count
 * @property {string} remedy
 */

/**
 * @typedef {object} Callers
 * @property {number} connections
 * @property {RefusedReason[]} refused
 */

/**
 * Something that an operator should repair.
 * @typedef {object} Trouble
 * @property {string} what
 * @property {number | null} since unix seconds; null if unknown
 * @property {number} count
 * @property {string} remedy
 * @property {string} [cost]
 */

/**
 * A game that several gateways share.
 * @typedef {object} SharedGame
 * @property {string} route
 * @property {string} segment
 * @property {number} game
 * @property {string} folder the name of the replica that folds it
 * @property {boolean} folding whether this gateway folds it
 * @property {boolean} folded whether anybody does
 * @property {number} replicas
 * @property {number} lag rounds that are decided and not in the journal
 * @property {number | null} entries_per_second null if not measured yet
 */

/**
 * @typedef {object} Replicas
 * @property {number} replicas
 * @property {number} games
 * @property {number} folding games that this gateway folds
 * @property {number} lag
 * @property {number | null} entries_per_second
 * @property {SharedGame[]} listed those that are furthest behind
 */

/** @typedef {{ restarts: number, lately: number, since: number | null }} ProcessEnds */

/**
 * @typedef {object} Front
 * @property {number} front
 * @property {number} pid
 * @property {number} connections
 * @property {number} in_flight
 */

/**
 * The processes of a gateway.
 * @typedef {object} Workers
 * @property {number} wanted fronts that there should be
 * @property {Front[]} fronts
 * @property {number} lost
 * @property {(ProcessEnds & { front: number })[]} lost_fronts
 * @property {ProcessEnds & { pid: number }} owner
 */

/** @typedef {{ kind: string, status: number | null, count: number }} FailureKind */

/**
 * @typedef {object} Health
 * @property {boolean | null} ok null if unknown
 * @property {string | null} [error] the latest
 * @property {number | null} [since] when ok last changed, unix seconds
 * @property {number} [failures]
 * @property {FailureKind[]} [kinds]
 * @property {{ kind: string, status: number | null, error: string, at: number, remedy?: string } | null} [last] the latest failure
 * @property {string} [breaker] whether requests wait for it
 * @property {Finding[]} [probe] what the latest probe found
 */

/**
 * What a probe found about a model.
 * @typedef {object} Finding
 * @property {string} check
 * @property {string} message
 * @property {"ok" | "warning" | "error"} level
 * @property {string} remedy empty if nothing is to be done
 * @property {string} [deployment] only if the model has several
 */

/**
 * One of several servers of a model.
 * @typedef {object} Deployment
 * @property {string} name
 * @property {boolean} up
 * @property {number} answers
 * @property {number} failures
 * @property {string | null} error the latest
 */

/** @typedef {{ health?: Health, deployments?: Deployment[] }} Model */

/**
 * All games of a route together.
 * @typedef {object} RouteTotals
 * @property {string} route
 * @property {Unit} unit what a round is
 * @property {number} games
 * @property {number} steps
 * @property {number} expert_calls
 * @property {number} tokens_saved
 * @property {number} unscored
 * @property {Partial<Record<Level, number>>} levels number of games by level
 */

/**
 * Which games are listed, as texts; empty for the default.
 * @typedef {object} GameListQuery
 * @property {string} [search]
 * @property {string} [route]
 * @property {string} [level]
 * @property {string} [sort]
 * @property {string} [reverse]
 * @property {string} [offset]
 */

/**
 * @typedef {object} Decision
 * @property {string} id
 * @property {number} game
 * @property {string} route
 * @property {string} segment
 * @property {Unit} unit what a round is
 * @property {number} step
 * @property {number} at
 * @property {number} uncertainty
 * @property {number} threshold
 * @property {number} propensity
 * @property {boolean} call_expert
 * @property {"draft" | "expert"} answered_by
 * @property {number} [stage] the model of a cascade that answered, from 1
 * @property {number} epoch
 * @property {DecisionState} state
 * @property {number | null} loss
 * @property {string} cause
 * @property {string} why
 * @property {number | null} draft_tokens
 * @property {number | null} expert_tokens
 * @property {number | null} judge_tokens
 * @property {Record<string, string> | null} texts by model
 */

/**
 * @typedef {object} DashboardDocument
 * @property {number} version
 * @property {boolean} live
 * @property {number} generated unix seconds
 * @property {string} title
 * @property {Game[]} games
 * @property {number} [games_left_out] found, and not in this document
 * @property {number} [games_found]
 * @property {number} [games_in_all]
 * @property {RouteTotals[]} [routes]
 * @property {LostJournals | null} [lost_journals]
 * @property {Callers} [callers]
 * @property {Replicas | null} [replicas] null unless gateways share games
 * @property {Workers | null} [workers] null for a gateway with one process
 * @property {Trouble[]} [troubles] the most serious first
 * @property {Record<string, Model>} [models] by name
 * @property {Decision[]} [decisions] only in a replay's page: the last ones
 */

/**
 * One page of decisions, newest first, and the step below which to continue.
 * @typedef {object} DecisionPage
 * @property {Decision[]} decisions
 * @property {number | null} next
 */

/**
 * @typedef {object} DecisionQuery
 * @property {number} game
 * @property {number} limit
 * @property {number} [before]
 * @property {string} [answered_by]
 * @property {string} [state]
 * @property {string} [loss]
 * @property {string} [min_uncertainty]
 * @property {string} [max_uncertainty]
 */

/**
 * Where a page gets its document from.
 * @typedef {object} DataSource
 * @property {boolean} live
 * @property {(game: number | null, list?: GameListQuery) => Promise<DashboardDocument>} data
 * @property {(query: DecisionQuery) => Promise<DecisionPage>} decisions
 * @property {(id: string) => Promise<Decision>} decision
 */

export {};
