// The schema of spec.shares.

import { atMost, integer, list, object } from '../kube/json-schema.ts'
import { SIZES } from './cel.ts'
import { ENTRY_SCHEMA } from './rule-schema.ts'

const weight = object(
  'Users with another weight than 1: all fields given must match.',
  {
    weight: integer('How many shares of a user with weight 1 each of them has.', 1, 100),
    users: list('User names; a trailing * is a prefix glob.', ENTRY_SCHEMA),
    userGroups: list('Groups, of which the user needs to have one.', ENTRY_SCHEMA),
  },
  ['weight'],
)

export const SHARES_SCHEMA = object(
  'How much of what the gateway divides among users those of this cluster have beside others, where there is not enough for all: requests in ' +
    'flight, watches, memory, reviews. Heartbeats of nodes need no weight.',
  {
    weights: atMost(
      SIZES.shareWeights,
      list('In order; the first that matches decides. Everybody else has weight 1.', weight),
    ),
  },
)
