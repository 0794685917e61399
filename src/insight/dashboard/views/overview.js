import { useEffect, useRef, useState } from 'preact/hooks'
import { Fragment as _Fragment, jsx as _jsx, jsxs as _jsxs } from 'preact/jsx-runtime'
import { count, duration, instant, latency, plural, share, whole } from '../data/format.ts'
import { useNow, usePoll } from '../data/poll.ts'
import { clusterLink } from '../data/route.ts'
import { Banner } from '../parts/banner.tsx'
import { Changes } from '../parts/changes.tsx'
import { Chart } from '../parts/chart.tsx'
import { Nothing, Pane } from '../parts/pane.tsx'
import { State } from '../parts/state.tsx'
import { SwitchLine } from '../parts/switch.tsx'
import { Tile } from '../parts/tile.tsx'
import { TopClients } from '../parts/top-clients.tsx'

const SEARCH_DELAY_MS = 150
export function OverviewView() {
  const [choice, setChoice] = useState({ search: '', show: 'all', sort: 'worst', page: 1 })
  const polled = usePoll(urlOf(useSettled(choice, SEARCH_DELAY_MS)))
  const { data } = polled
  const choose = (part) => setChoice((before) => ({ ...before, page: 1, ...part }))
  return _jsxs(_Fragment, {
    children: [
      _jsx('h1', { class: 'unseen', children: 'Overview' }),
      _jsx(Banner, { polled: polled, missing: data?.missing ?? [] }),
      data === undefined
        ? _jsx(Nothing, { children: polled.fault === '' ? 'Loading …' : '' })
        : _jsxs(_Fragment, {
            children: [
              _jsx(Summary, { overview: data }),
              _jsx(Jump, { overview: data }),
              _jsxs('div', {
                class: 'columns',
                children: [
                  _jsx(Clusters, { overview: data, choice: choice, choose: choose }),
                  _jsxs('aside', {
                    'aria-label': 'What happens',
                    children: [
                      _jsx(Switches, { overview: data }),
                      _jsx(Pane, {
                        id: 'changes',
                        title: 'Changed',
                        note: 'last 30 minutes',
                        children: _jsx(Changes, { changes: data.changes, withCluster: true }),
                      }),
                      _jsx(Refusals, { overview: data }),
                      _jsx(TopClients, { cluster: '' }),
                      _jsx(Certificates, { overview: data }),
                      _jsx(Problems, { overview: data }),
                    ],
                  }),
                ],
              }),
              _jsx(Foot, { overview: data }),
            ],
          }),
    ],
  })
}
function urlOf({ search, show, sort, page }) {
  return `/api/v1/overview?${new URLSearchParams({ search, show, sort, page: String(page), replicas: 'all' })}`
}
/** The value, once it has not changed for a while: a search is asked for when somebody stops typing. */
function useSettled(value, afterMs) {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), afterMs)
    return () => clearTimeout(timer)
  }, [value, afterMs])
  return settled
}
function Summary({ overview }) {
  const { totals } = overview
  return _jsxs('section', {
    class: 'summary',
    'aria-labelledby': 'verdict',
    children: [
      _jsxs('div', {
        class: 'verdict',
        children: [
          _jsx('h2', {
            id: 'verdict',
            children:
              totals.hurting === 0
                ? _jsx(State, {
                    tone: 'good',
                    children: totals.clusters === 0 ? 'No clusters' : 'All clusters are well',
                  })
                : _jsxs(State, {
                    tone: 'bad',
                    children: [
                      whole(totals.hurting),
                      ' of ',
                      plural(totals.clusters, 'cluster'),
                      ' ',
                      totals.hurting === 1 ? 'hurts' : 'hurt',
                    ],
                  }),
          }),
          totals.switched > 0 &&
            _jsx('p', {
              children: _jsxs(State, { tone: 'warn', children: [plural(totals.switched, 'cluster'), ' switched'] }),
            }),
          _jsx(Figures, { totals: totals }),
        ],
      }),
      _jsx(Chart, { series: totals.series, label: 'All clusters' }),
    ],
  })
}
/** On narrow screens everything stands below each other: links to what matters, with how much there is. */
function Jump({ overview }) {
  const { switches, changes, refusals, certificates, omitted } = overview
  const link = (id, word, list) => {
    const go = (event) => {
      event.preventDefault()
      document.getElementById(id)?.scrollIntoView()
      document.getElementById(id)?.focus({ preventScroll: true })
    }
    return _jsxs('a', { href: `#${id}`, onClick: go, children: [word, ' ', whole(list.length + (omitted[id] ?? 0))] })
  }
  return _jsxs('nav', {
    class: 'jump',
    'aria-label': 'On this page',
    children: [
      link('switches', 'Switched', switches),
      link('changes', 'Changed', changes),
      link('refusals', 'Refused', refusals),
      link('certificates', 'Certificates', certificates),
    ],
  })
}
function Figures({ totals }) {
  const { requestsPerSecond: all } = totals
  const part = (value) => (all > 0 ? share(value / all) : '')
  const rows = [
    ['requests/s', count(all), ''],
    ['errors/s', count(totals.errorsPerSecond), part(totals.errorsPerSecond)],
    ['refused/s', count(totals.refusedPerSecond), part(totals.refusedPerSecond)],
    ['in flight', whole(totals.inFlight), ''],
    ['watches', whole(totals.watches), ''],
    ['p99', latency(totals.series.p99.at(-1) ?? null), ''],
  ]
  return _jsx('dl', {
    class: 'figures',
    children: rows.map(([name, value, beside]) =>
      _jsxs(
        'div',
        {
          children: [
            _jsx('dt', { children: name }),
            _jsxs('dd', { children: [value, ' ', beside !== '' && _jsx('small', { children: beside })] }),
          ],
        },
        name,
      ),
    ),
  })
}
function Clusters({ overview, choice, choose }) {
  const { clusters, matching, totals } = overview
  return _jsxs('section', {
    class: 'clusters',
    'aria-labelledby': 'clusters',
    children: [
      _jsxs('div', {
        class: 'bar',
        children: [
          _jsxs('h2', {
            id: 'clusters',
            children: [
              'Clusters',
              ' ',
              _jsx('small', {
                role: 'status',
                children:
                  matching === totals.clusters ? whole(matching) : `${whole(matching)} of ${whole(totals.clusters)}`,
              }),
            ],
          }),
          _jsx(Chooser, { choice: choice, choose: choose }),
        ],
      }),
      clusters.length === 0
        ? _jsx(Nothing, {
            children: totals.clusters === 0 ? 'There are no UpstreamClusters yet.' : 'No cluster matches.',
          })
        : _jsx('ul', { class: 'tiles', children: clusters.map((tile) => _jsx(Tile, { tile: tile }, tile.name)) }),
      _jsx(Pages, { overview: overview, choose: choose }),
    ],
  })
}
function Chooser({ choice, choose }) {
  const search = useRef(null)
  useEffect(() => {
    const onKey = (event) => {
      const { target } = event
      const typing = target instanceof HTMLElement && /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)
      if (event.key !== '/' || typing || event.ctrlKey || event.metaKey || event.altKey) return
      event.preventDefault()
      search.current?.focus()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
  return _jsxs('search', {
    class: 'chooser',
    children: [
      _jsx('input', {
        ref: search,
        type: 'search',
        placeholder: 'Search (press /)',
        'aria-label': 'Search clusters by name',
        maxLength: 253,
        value: choice.search,
        onInput: (event) => choose({ search: event.currentTarget.value }),
      }),
      _jsxs('select', {
        'aria-label': 'Which clusters',
        value: choice.show,
        onChange: (event) => choose({ show: event.currentTarget.value }),
        children: [
          _jsx('option', { value: 'all', children: 'all' }),
          _jsx('option', { value: 'hurting', children: 'hurting' }),
          _jsx('option', { value: 'switched', children: 'switched' }),
        ],
      }),
      _jsxs('select', {
        'aria-label': 'Order of clusters',
        value: choice.sort,
        onChange: (event) => choose({ sort: event.currentTarget.value }),
        children: [
          _jsx('option', { value: 'worst', children: 'worst first' }),
          _jsx('option', { value: 'name', children: 'by name' }),
          _jsx('option', { value: 'requests', children: 'by requests' }),
          _jsx('option', { value: 'errors', children: 'by errors' }),
          _jsx('option', { value: 'refused', children: 'by refusals' }),
          _jsx('option', { value: 'latency', children: 'by latency' }),
        ],
      }),
    ],
  })
}
function Pages({ overview, choose }) {
  const { page, pages } = overview
  if (pages <= 1) return null
  return _jsxs('nav', {
    class: 'pages',
    'aria-label': 'Pages of clusters',
    children: [
      _jsx('button', {
        type: 'button',
        disabled: page <= 1,
        onClick: () => choose({ page: page - 1 }),
        children: '\u2190 Previous',
      }),
      _jsxs('span', { children: ['page ', whole(page), ' of ', whole(pages)] }),
      _jsx('button', {
        type: 'button',
        disabled: page >= pages,
        onClick: () => choose({ page: page + 1 }),
        children: 'Next \u2192',
      }),
    ],
  })
}
function More({ overview, list }) {
  const more = overview.omitted[list] ?? 0
  return more === 0 ? null : _jsxs('p', { class: 'nothing', children: ['and ', whole(more), ' more'] })
}
function Switches({ overview }) {
  const { switches } = overview
  return _jsxs(Pane, {
    id: 'switches',
    title: 'Switched',
    children: [
      switches.length === 0
        ? _jsx(Nothing, { children: 'No cluster is in a degrade mode.' })
        : _jsx('ul', {
            class: 'plain',
            children: switches.map((one) =>
              _jsxs(
                'li',
                {
                  children: [
                    _jsx('a', { href: clusterLink(one.cluster), children: one.cluster }),
                    _jsx(SwitchLine, { degrade: one }),
                  ],
                },
                one.cluster,
              ),
            ),
          }),
      _jsx(More, { overview: overview, list: 'switches' }),
    ],
  })
}
function Refusals({ overview }) {
  const { refusals } = overview
  return _jsxs(Pane, {
    id: 'refusals',
    title: 'Refused',
    note: 'last 5 minutes',
    children: [
      refusals.length === 0
        ? _jsx(Nothing, { children: 'Nothing is refused.' })
        : _jsx('ul', {
            class: 'rows',
            children: refusals.map((one) =>
              _jsxs(
                'li',
                {
                  children: [
                    _jsxs('span', {
                      class: 'what',
                      children: [
                        one.cluster !== '' && _jsx('a', { href: clusterLink(one.cluster), children: one.cluster }),
                        ' ',
                        _jsx('b', { children: one.reason }),
                        ' ',
                        one.rule !== '' && _jsx('span', { class: 'meta', children: one.rule }),
                      ],
                    }),
                    _jsx('span', { class: 'number', title: 'HTTP status', children: one.code }),
                    _jsxs('span', { class: 'number', children: [count(one.perSecond), '/s'] }),
                    _jsx('span', { class: 'number', children: whole(one.count) }),
                  ],
                },
                `${one.cluster} ${one.reason} ${one.rule}`,
              ),
            ),
          }),
      _jsx(More, { overview: overview, list: 'refusals' }),
    ],
  })
}
function Certificates({ overview }) {
  const now = useNow()
  const { certificates } = overview
  return _jsxs(Pane, {
    id: 'certificates',
    title: 'Certificates',
    note: 'that end within 30 days',
    children: [
      certificates.length === 0
        ? _jsx(Nothing, { children: 'None.' })
        : _jsx('ul', {
            class: 'rows',
            children: certificates.map(({ cluster, certificate, endsAt }) =>
              _jsxs(
                'li',
                {
                  children: [
                    _jsxs('span', {
                      class: 'what',
                      children: [
                        cluster === '' ? 'the gateway' : _jsx('a', { href: clusterLink(cluster), children: cluster }),
                        ' ',
                        certificate,
                      ],
                    }),
                    _jsx('span', {
                      title: instant(endsAt),
                      children:
                        endsAt <= now
                          ? _jsx(State, { tone: 'bad', children: 'has ended' })
                          : _jsxs(State, { tone: 'warn', children: ['in ', duration(endsAt - now)] }),
                    }),
                  ],
                },
                `${cluster} ${certificate}`,
              ),
            ),
          }),
      _jsx(More, { overview: overview, list: 'certificates' }),
    ],
  })
}
function Problems({ overview }) {
  const { problems } = overview
  if (problems.length === 0) return null
  return _jsxs(Pane, {
    id: 'problems',
    title: 'Configuration',
    children: [
      _jsx('ul', {
        class: 'plain',
        children: problems.map(({ cluster, severity, message }, i) =>
          _jsxs(
            'li',
            {
              children: [
                _jsx(State, { tone: severity === 'error' ? 'bad' : 'warn', children: severity }),
                ' ',
                cluster !== '' && _jsx('a', { href: clusterLink(cluster), children: cluster }),
                ' ',
                message,
              ],
            },
            `${i} ${message}`,
          ),
        ),
      }),
      _jsx(More, { overview: overview, list: 'problems' }),
    ],
  })
}
function Foot({ overview }) {
  const { replicas, version, sampledAt } = overview
  return _jsxs('footer', {
    children: [
      'Portcullis ',
      version,
      ' \u00B7 numbers of ',
      plural(replicas.length, 'replica'),
      ' (',
      replicas.join(', '),
      ')',
      sampledAt === 0 && ' · the first sample comes within 10 s',
    ],
  })
}
