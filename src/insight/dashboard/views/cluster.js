import { Fragment as _Fragment, jsx as _jsx, jsxs as _jsxs } from 'preact/jsx-runtime'
import { count, duration, instant, latency, plural, share, whole } from '../data/format.ts'
import { useNow, usePoll } from '../data/poll.ts'
import { shellLine } from '../data/shell.ts'
import { Banner } from '../parts/banner.tsx'
import { Changes } from '../parts/changes.tsx'
import { Chart } from '../parts/chart.tsx'
import { Command } from '../parts/command.tsx'
import { Nothing, Pane, Table } from '../parts/pane.tsx'
import { State, Troubles } from '../parts/state.tsx'
import { SwitchLine } from '../parts/switch.tsx'
import { TopClients } from '../parts/top-clients.tsx'
export function ClusterView({ name }) {
  const polled = usePoll(`/api/v1/clusters/${encodeURIComponent(name)}?replicas=all`)
  const { data } = polled
  return _jsxs(_Fragment, {
    children: [
      _jsxs('nav', {
        class: 'crumbs',
        'aria-label': 'Breadcrumb',
        children: [
          _jsx('a', { href: '#/', children: 'Overview' }),
          ' / ',
          _jsx('span', { 'aria-current': 'page', children: name }),
        ],
      }),
      _jsx(Banner, { polled: polled, missing: data?.missing ?? [] }),
      data === undefined
        ? _jsxs(_Fragment, {
            children: [
              _jsx('h1', { children: name }),
              _jsx(Nothing, { children: polled.fault === '' ? 'Loading …' : '' }),
            ],
          })
        : _jsx(Page, { page: data }),
    ],
  })
}
function Page({ page }) {
  const { tile } = page
  return _jsxs(_Fragment, {
    children: [
      _jsxs('section', {
        class: 'summary',
        'aria-labelledby': 'name',
        children: [
          _jsxs('div', {
            class: 'verdict',
            children: [
              _jsx('h1', { id: 'name', children: tile.name }),
              _jsx('p', { class: 'troubles', children: _jsx(Troubles, { troubles: tile.troubles }) }),
              _jsxs('dl', {
                class: 'figures',
                children: [
                  _jsx(Figure, { name: 'requests/s', children: count(tile.requestsPerSecond) }),
                  _jsx(Figure, { name: 'errors', children: share(tile.errorRatio) }),
                  _jsx(Figure, { name: 'refused', children: share(tile.refusedRatio) }),
                  _jsxs(Figure, {
                    name: 'p99',
                    children: [latency(tile.p99), ' ', _jsxs('small', { children: ['p50 ', latency(tile.p50)] })],
                  }),
                  _jsx(Figure, { name: 'in flight', children: whole(tile.inFlight) }),
                  _jsx(Figure, { name: 'watches', children: whole(tile.watches) }),
                ],
              }),
              page.credentialFault !== '' &&
                _jsx('p', {
                  children: _jsxs(State, {
                    tone: 'bad',
                    children: ['upstream refuses the gateway: ', page.credentialFault],
                  }),
                }),
            ],
          }),
          _jsx(Chart, { series: page.series, label: tile.name }),
        ],
      }),
      _jsxs('div', {
        class: 'columns even',
        children: [
          _jsxs('div', {
            children: [
              _jsx(Switch, { page: page }),
              _jsx(Endpoints, { endpoints: page.endpoints }),
              _jsx(Policies, { page: page }),
              _jsx(Limits, { page: page }),
            ],
          }),
          _jsxs('aside', {
            'aria-label': 'What happens',
            children: [
              _jsx(Pane, {
                id: 'changes',
                title: 'Changes and Events',
                note: 'last 30 minutes',
                children: _jsx(Changes, { changes: page.changes, withCluster: false }),
              }),
              _jsx(Refusals, { page: page }),
              _jsx(TopClients, { cluster: tile.name }),
              _jsx(Protection, { page: page }),
              _jsx(Rest, { page: page }),
            ],
          }),
        ],
      }),
    ],
  })
}
function Figure({ name, children }) {
  return _jsxs('div', { children: [_jsx('dt', { children: name }), _jsx('dd', { children: children })] })
}
function Switch({ page }) {
  const { name, degrade } = page.tile
  const set = (mode) => shellLine('portcullis', 'degrade', name, '--mode', mode, '--reason', 'say why', '--ttl', '30m')
  return _jsxs(Pane, {
    id: 'switch',
    title: 'Degrade switch',
    children: [
      degrade === null
        ? _jsx(State, { tone: 'good', children: 'Off: everything passes' })
        : _jsx(SwitchLine, { degrade: degrade }),
      _jsxs('div', {
        class: 'commands',
        children: [
          degrade === null
            ? _jsxs(_Fragment, {
                children: [
                  _jsx(Command, { does: 'Evictions and deletions of pods stop', line: set('NoDisruption') }),
                  _jsx(Command, { does: 'Only reads pass', line: set('ReadOnly') }),
                ],
              })
            : _jsxs(_Fragment, {
                children: [
                  _jsx(Command, {
                    does: 'Climb back to Off by steps',
                    line: shellLine('portcullis', 'degrade', name, '--recover'),
                  }),
                  _jsx(Command, {
                    does: 'Switch it off at once',
                    line: shellLine('portcullis', 'degrade', name, '--mode', 'Off'),
                  }),
                ],
              }),
          _jsx(Command, {
            does: 'See where it is in force',
            line: shellLine('portcullis', 'degrade', name, '--status'),
          }),
        ],
      }),
    ],
  })
}
const ENDPOINT_TONES = {
  up: 'good',
  down: 'bad',
  ejected: 'warn',
  disabled: 'neutral',
  unknown: 'neutral',
  backup: 'neutral',
}
function Endpoints({ endpoints }) {
  const up = endpoints.filter(({ state }) => state === 'up').length
  return _jsx(Pane, {
    id: 'endpoints',
    title: 'Endpoints',
    note: `${up} of ${endpoints.length} up`,
    children: _jsx(Table, {
      label: 'Endpoints',
      head: ['Endpoint', 'State', '#req/s', '#errors/s', '#in flight', '#weight'],
      children: endpoints.map((one) =>
        _jsxs(
          'tr',
          {
            children: [
              _jsx('th', { scope: 'row', class: 'mono', children: one.url }),
              _jsxs('td', {
                children: [
                  _jsx(State, { tone: ENDPOINT_TONES[one.state], children: one.state }),
                  one.message !== '' && _jsxs('span', { class: 'meta', children: [' ', one.message] }),
                ],
              }),
              _jsx('td', { class: 'number', children: count(one.requestsPerSecond) }),
              _jsx('td', { class: 'number', children: count(one.errorsPerSecond) }),
              _jsx('td', { class: 'number', children: whole(one.inFlight) }),
              _jsx('td', { class: 'number', children: one.weight }),
            ],
          },
          one.url,
        ),
      ),
    }),
  })
}
function Policies({ page }) {
  return _jsx(Pane, {
    id: 'policies',
    title: 'Policies',
    note: 'the first that matches decides',
    children: _jsx(Table, {
      label: 'Dispatch policies',
      head: ['#No.', 'Matches', 'Action', 'Limit', '#req/s', '#hits'],
      children: page.policies.map((one) =>
        _jsxs(
          'tr',
          {
            children: [
              _jsx('th', { scope: 'row', class: 'number', children: one.index }),
              _jsx('td', { children: one.matches }),
              _jsx('td', {
                children: one.action === 'allow' ? one.strategy : _jsx(State, { tone: 'warn', children: one.action }),
              }),
              _jsx('td', { children: one.limit === '' ? '–' : one.limit }),
              _jsx('td', { class: 'number', children: count(one.perSecond) }),
              _jsx('td', { class: 'number', children: whole(one.hits) }),
            ],
          },
          one.index,
        ),
      ),
    }),
  })
}
function Limits({ page }) {
  const { limits, tile } = page
  return _jsx(Pane, {
    id: 'limits',
    title: 'Limits',
    children:
      limits.length === 0
        ? _jsx(Nothing, { children: 'The cluster has no limits.' })
        : _jsxs(_Fragment, {
            children: [
              _jsx(Table, {
                label: 'Flow control schemas',
                head: ['Limit', 'Size', 'Fill', '#in flight', '#users', '#admitted/s', '#refused/s'],
                children: limits.map((one) =>
                  _jsxs(
                    'tr',
                    {
                      children: [
                        _jsxs('th', {
                          scope: 'row',
                          children: [one.name, ' ', one.shadow && _jsx('span', { class: 'tag', children: 'shadow' })],
                        }),
                        _jsxs('td', {
                          children: [one.size, one.perUser && _jsx('span', { class: 'meta', children: ' per user' })],
                        }),
                        _jsx('td', { children: _jsx(Fill, { limit: one }) }),
                        _jsx('td', { class: 'number', children: whole(one.inFlight) }),
                        _jsx('td', { class: 'number', children: one.perUser ? whole(one.users) : '–' }),
                        _jsx('td', { class: 'number', children: count(one.admittedPerSecond) }),
                        _jsx('td', { class: 'number', children: count(one.rejectedPerSecond) }),
                      ],
                    },
                    one.name,
                  ),
                ),
              }),
              _jsx('div', { class: 'commands', children: _jsx(LimitCommand, { cluster: tile.name, limits: limits }) }),
            ],
          }),
  })
}
/** The limit that refuses most, doubled; the patch fails when the list has changed in the meantime. */
function LimitCommand({ cluster, limits }) {
  const [busiest] = limits
    .filter(({ change }) => change !== null)
    .sort((a, b) => b.rejectedPerSecond - a.rejectedPerSecond)
  const edit = shellLine('kubectl', 'edit', 'upstreamcluster', cluster)
  if (busiest?.change == null) return _jsx(Command, { does: 'Change the limits', line: edit })
  const { index, name, change } = busiest
  const at = `/spec/flowControl/flowControlSchemas/${index}`
  const patch = [
    { op: 'test', path: `${at}/name`, value: name },
    { op: 'replace', path: `${at}/${change.path}`, value: change.value * 2 },
  ]
  return _jsx(Command, {
    does: `Double ${name} (${change.path}: ${change.value} → ${change.value * 2})`,
    line: shellLine('kubectl', 'patch', 'upstreamcluster', cluster, '--type', 'json', '-p', JSON.stringify(patch)),
  })
}
function Fill({ limit }) {
  const { fill } = limit
  if (fill === null) return _jsx('span', { class: 'meta', children: '\u2013' })
  return _jsxs('span', {
    class: 'fill',
    children: [
      _jsx('meter', {
        min: 0,
        max: 1,
        high: 0.8,
        optimum: 0,
        low: 0.8,
        value: fill,
        'aria-label': `${limit.name} is filled`,
        children: share(fill),
      }),
      ' ',
      share(fill),
    ],
  })
}
function Refusals({ page }) {
  return _jsx(Pane, {
    id: 'refusals',
    title: 'Refused',
    note: 'last 5 minutes',
    children:
      page.refusals.length === 0
        ? _jsx(Nothing, { children: 'Nothing is refused.' })
        : _jsx(Table, {
            label: 'Refusals',
            head: ['Reason', 'Rule', '#code', '#/s', '#count'],
            children: page.refusals.map((one) =>
              _jsxs(
                'tr',
                {
                  children: [
                    _jsx('th', { scope: 'row', children: one.reason }),
                    _jsx('td', { children: one.rule === '' ? '–' : one.rule }),
                    _jsx('td', { class: 'number', children: one.code }),
                    _jsx('td', { class: 'number', children: count(one.perSecond) }),
                    _jsx('td', { class: 'number', children: whole(one.count) }),
                  ],
                },
                `${one.reason} ${one.rule}`,
              ),
            ),
          }),
  })
}
function Protection({ page }) {
  const { protection, tile } = page
  if (protection === null) return null
  const { protectors, omitted, state, message, cell, shadow } = protection
  return _jsxs(Pane, {
    id: 'protection',
    title: 'Pod protection',
    note: `cell ${cell}${shadow ? ', shadow' : ''}`,
    children: [
      _jsx('p', {
        children: _jsxs(State, {
          tone: state === 'Broken' ? 'bad' : state === 'Starting' ? 'neutral' : 'good',
          children: [state, ' ', message],
        }),
      }),
      protectors.length === 0
        ? _jsx(Nothing, { children: 'No PodProtector has pods here.' })
        : _jsx(Table, {
            label: 'PodProtectors',
            head: ['PodProtector', '#available', '#minimum', '#pending', '#may go', 'Cannot go'],
            children: protectors.map((one) => _jsx(Protector, { row: one }, `${one.namespace}/${one.name}`)),
          }),
      omitted > 0 && _jsxs(Nothing, { children: ['and ', whole(omitted), ' more'] }),
      _jsxs('div', {
        class: 'commands',
        children: [
          protectors.slice(0, 1).map(({ namespace, name }) =>
            _jsx(
              Command,
              {
                does: 'The numbers of a protector, cell by cell',
                line: shellLine('portcullis', 'protect', 'status', name, '-n', namespace),
              },
              name,
            ),
          ),
          protectors
            .filter(({ stuck }) => stuck.length > 0)
            .slice(0, 1)
            .map(({ namespace, stuck: [pod = ''] }) =>
              _jsx(
                Command,
                {
                  does: 'Why a pod cannot go',
                  line: shellLine('portcullis', 'protect', 'why', pod, '-n', namespace, '--cluster', tile.name),
                },
                pod,
              ),
            ),
          _jsx(Command, {
            does: shadow ? 'Refuse again' : 'Refuse nothing, only count',
            line: shellLine('portcullis', 'protect', 'dry-run', shadow ? 'off' : 'on', tile.name),
          }),
        ],
      }),
    ],
  })
}
function Protector({ row }) {
  return _jsxs('tr', {
    children: [
      _jsxs('th', {
        scope: 'row',
        children: [
          row.namespace,
          '/',
          row.name,
          row.fault !== '' && _jsxs(_Fragment, { children: [' ', _jsx(State, { tone: 'bad', children: row.fault })] }),
        ],
      }),
      _jsx('td', { class: 'number', children: row.available }),
      _jsx('td', { class: 'number', children: row.minAvailable }),
      _jsx('td', { class: 'number', children: row.pending }),
      _jsx('td', { class: 'number', children: row.mayGo }),
      _jsx('td', {
        children:
          row.stuckCount === 0
            ? '–'
            : _jsxs(_Fragment, {
                children: [
                  _jsx(State, {
                    tone: row.available < row.minAvailable ? 'bad' : 'warn',
                    children: plural(row.stuckCount, 'pod'),
                  }),
                  _jsxs('span', { class: 'meta', children: [' ', row.stuck.join(', ')] }),
                ],
              }),
      }),
    ],
  })
}
function Rest({ page }) {
  const now = useNow()
  return _jsxs(Pane, {
    id: 'rest',
    title: 'Names and certificates',
    children: [
      _jsx('p', { class: 'meta', children: page.hosts.join(', ') }),
      _jsx('ul', {
        class: 'rows',
        children: page.certificates.map(({ certificate, endsAt }) =>
          _jsxs(
            'li',
            {
              children: [
                _jsx('span', { class: 'what', children: certificate }),
                _jsx('span', {
                  title: instant(endsAt),
                  children:
                    endsAt <= now
                      ? _jsx(State, { tone: 'bad', children: 'has ended' })
                      : `ends in ${duration(endsAt - now)}`,
                }),
              ],
            },
            certificate,
          ),
        ),
      }),
      page.problems.map(({ severity, message }, i) =>
        _jsx(
          'p',
          { children: _jsx(State, { tone: severity === 'error' ? 'bad' : 'warn', children: message }) },
          `${i} ${message}`,
        ),
      ),
    ],
  })
}
