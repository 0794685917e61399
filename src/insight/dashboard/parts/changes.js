import { Fragment as _Fragment, jsx as _jsx, jsxs as _jsxs } from 'preact/jsx-runtime'
import { clock, duration, instant } from '../data/format.ts'
import { useNow } from '../data/poll.ts'
import { clusterLink } from '../data/route.ts'
import { Nothing } from './pane.tsx'
import { State } from './state.tsx'
export function Changes({ changes, withCluster }) {
  const now = useNow()
  if (changes.length === 0) return _jsx(Nothing, { children: 'Nothing has changed in the last 30 minutes.' })
  return _jsx('ol', {
    class: 'changes',
    children: changes.map((change, i) =>
      _jsxs(
        'li',
        {
          children: [
            _jsx('time', {
              dateTime: instant(change.at),
              title: `${clock(change.at)}, ${duration(now - change.at)} ago`,
              children: duration(now - change.at),
            }),
            _jsxs('span', {
              class: 'what',
              children: [
                withCluster &&
                  change.cluster !== '' &&
                  _jsxs(_Fragment, {
                    children: [_jsx('a', { href: clusterLink(change.cluster), children: change.cluster }), ' '],
                  }),
                _jsx(State, { tone: change.severity, children: change.text }),
                change.by !== '' && _jsxs('span', { class: 'meta', children: [' by ', change.by] }),
                change.replicas !== undefined &&
                  _jsxs('span', { class: 'meta', children: [' at ', change.replicas.join(', ')] }),
              ],
            }),
          ],
        },
        `${change.at} ${change.cluster} ${change.text} ${i}`,
      ),
    ),
  })
}
