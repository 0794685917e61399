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
import { AUTO_DEGRADE_RULES, AUTO_DEGRADE_UPSTREAM_RULES, autoDegradeNodesRules } from './cel/cel-rules.ts'

const MAX_UNREADY_PERCENT = 45
const EXIT_PERCENT = 30

const nodes = object(
  'If present, even if empty, NoDisruption is set when many nodes are unready. Default: nodes are not watched.',
  {
    selector: labelSelector('Only nodes with these labels count. Default: all.'),
    okUnready: defaultsTo(3, integer('This many unready nodes or fewer are never an incident.', 0, 100_000)),
    maxUnreadyPercent: defaultsTo(
      MAX_UNREADY_PERCENT,
      integer(
        'The incident begins when more than this percentage of the nodes, and more than okUnready, are unready.',
        0,
        100,
      ),
    ),
    enterAfter: defaultsTo('30s', duration('How long that must last without a break.')),
    exitPercent: defaultsTo(
      EXIT_PERCENT,
      integer(
        'The incident ends when at most this percentage, or okUnready, are unready. At most maxUnreadyPercent.',
        0,
        100,
      ),
    ),
    exitAfter: defaultsTo('2m', duration('How long that must last without a break.')),
    maxStartupTime: defaultsTo(
      '15m',
      duration('A node that is not ready counts as unready only after this time since its creation.'),
    ),
    staleAfter: defaultsTo(
      '60s',
      duration('If the state of the nodes is older than this, nothing is decided. At least 5s.'),
    ),
  },
)

const upstream = object(
  'If present, even if empty, Limited is set when upstream is overloaded. Default: answers are not observed.',
  {
    maxErrorPercent: defaultsTo(
      25,
      integer('The overload begins when more than this percentage of the requests get 5xx or no answer.', 1, 100),
    ),
    maxLatency: defaultsTo(
      '0s',
      duration(
        'It also begins when the median time to the response head is longer than this; 0s: latency does not count.',
      ),
    ),
    minRequests: defaultsTo(50, integer('With fewer requests in the window, nothing is decided.', 1, 1_000_000)),
    window: defaultsTo('30s', duration('Length of the window of requests that is evaluated: 5s to 10m.')),
    enterAfter: defaultsTo('30s', duration('How long the overload must last without a break.')),
    exitAfter: defaultsTo(
      '2m',
      duration('How long both values must be at most half of their limits, without a break, until it ends.'),
    ),
  },
)

const recovery = object(
  'Written to spec.degrade.recovery when the incident is over, which begins the recovery. Default: its defaults.',
  {
    hold: duration('How long the checks of a mode must hold before the next mode is set.'),
    ramp: duration('How long the ramp of Limited takes.'),
  },
)

export const AUTO_DEGRADE_SCHEMA = checked(
  object('When the gateway sets a stricter mode by itself. At least one of nodes and upstream. Default: never.', {
    nodes: checked(nodes, autoDegradeNodesRules(EXIT_PERCENT, MAX_UNREADY_PERCENT)),
    upstream: checked(upstream, AUTO_DEGRADE_UPSTREAM_RULES),
    recovery,
    shadow: defaultsTo(false, flag('Report the mode that would be set, but do not set it.')),
  }),
  AUTO_DEGRADE_RULES,
)

export const AUTO_DEGRADE_STATUS_SCHEMA = object(
  'Observations and actions of spec.degrade.auto.',
  {
    phase: typedText<'Normal' | 'Suspect' | 'Degraded' | 'Unknown'>(
      'Normal, Suspect or Degraded; or Unknown: there is not enough information for a decision.',
    ),
    reason: text('Reason, as a sentence for people.'),
    since: time('When the phase began.'),
    causes: list('Causes that have begun: Nodes, Upstream.', typedText<'Nodes' | 'Upstream'>('A cause.')),
    action: typedText<'Entered' | 'Shadow' | 'Stricter' | 'Overruled'>(
      'Action taken: Entered, Shadow, Stricter or Overruled.',
    ),
    mode: text('The mode that was set, or in shadow mode would have been set.'),
  },
  ['phase'],
  ['reason', 'since'],
)
