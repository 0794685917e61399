// The schemas of spec.degrade.auto and status.degrade.auto.

import {
  checked,
  defaultsTo,
  duration,
  flag,
  integer,
  list,
  object,
  text,
  time,
  typedText,
} from '../../../kit/api/json/json-schema.ts'
import { labelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import { AUTO_DEGRADE_RULES, AUTO_DEGRADE_UPSTREAM_RULES, autoDegradeNodesRules } from './cel.ts'

const MAX_UNREADY_PERCENT = 45
const EXIT_PERCENT = 30

const nodes = object(
  'Enters NoDisruption when many nodes are unready. When present, even if empty; default: nodes are not looked at.',
  {
    selector: labelSelector('Only nodes with these labels count. Default: all.'),
    okUnready: defaultsTo(3, integer('Up to this many unready nodes are not an incident in any cluster.', 0, 100_000)),
    maxUnreadyPercent: defaultsTo(
      MAX_UNREADY_PERCENT,
      integer('It begins with strictly more than so many per cent unready, and strictly more than okUnready.', 0, 100),
    ),
    enterAfter: defaultsTo('30s', duration('It begins after that long without a break.')),
    exitPercent: defaultsTo(
      EXIT_PERCENT,
      integer('It ends with at most so many per cent unready, or okUnready. At most maxUnreadyPercent.', 0, 100),
    ),
    exitAfter: defaultsTo('2m', duration('It ends after that long without a break.')),
    maxStartupTime: defaultsTo(
      '15m',
      duration('A node that is not ready counts as unready only this long after its creation.'),
    ),
    staleAfter: defaultsTo(
      '60s',
      duration('What is known of the nodes decides nothing once it is older than this. At least 5s.'),
    ),
  },
)

const upstream = object(
  'Enters Limited when upstream is overloaded. When present, even if empty; default: answers are not looked at.',
  {
    maxErrorPercent: defaultsTo(
      25,
      integer('It begins with more than so many per cent of the requests answered with 5xx, or not at all.', 1, 100),
    ),
    maxLatency: defaultsTo(
      '0s',
      duration('Or with a median time until the response head above this; 0s: it does not count.'),
    ),
    minRequests: defaultsTo(50, integer('With fewer requests in the window nothing is decided.', 1, 1_000_000)),
    window: defaultsTo('30s', duration('How far is looked back: 5s to 10m.')),
    enterAfter: defaultsTo('30s', duration('It begins after that long without a break.')),
    exitAfter: defaultsTo('2m', duration('It ends after that long, without a break, of at most half of both.')),
  },
)

const recovery = object(
  'What is written to spec.degrade.recovery when the cluster is good again, so that the way back begins. Default: its defaults.',
  {
    hold: duration('How long the checks of a mode have to hold until the next mode is set.'),
    ramp: duration('How long Limited takes to let through as much as Off.'),
  },
)

export const AUTO_DEGRADE_SCHEMA = checked(
  object('When the gateway itself sets a stricter mode. At least one of nodes and upstream. Default: never.', {
    nodes: checked(nodes, autoDegradeNodesRules(EXIT_PERCENT, MAX_UNREADY_PERCENT)),
    upstream: checked(upstream, AUTO_DEGRADE_UPSTREAM_RULES),
    recovery,
    shadow: defaultsTo(false, flag('Say what it would do, and do nothing.')),
  }),
  AUTO_DEGRADE_RULES,
)

export const AUTO_DEGRADE_STATUS_SCHEMA = object(
  'What spec.degrade.auto sees and does.',
  {
    phase: typedText<'Normal' | 'Suspect' | 'Degraded' | 'Unknown'>(
      'Normal; Suspect, Degraded; or Unknown: too little is known for a decision.',
    ),
    reason: text('Why, as a sentence for people.'),
    since: time('When the phase began.'),
    causes: list('What has begun: Nodes, Upstream.', typedText<'Nodes' | 'Upstream'>('A cause.')),
    action: typedText<'Entered' | 'Shadow' | 'Stricter' | 'Overruled'>(
      'What was done about it: Entered, Shadow, Stricter or Overruled.',
    ),
    mode: text('The mode that was entered, or would have been in shadow mode.'),
  },
  ['phase'],
  ['reason', 'since'],
)
