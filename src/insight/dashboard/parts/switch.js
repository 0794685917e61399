import { Fragment as _Fragment, jsx as _jsx, jsxs as _jsxs } from 'preact/jsx-runtime'
import { duration, instant } from '../data/format.ts'
import { useNow } from '../data/poll.ts'
export function SwitchLine({ degrade }) {
  const now = useNow()
  const { mode, reason, by, since, expiresAt, shadow, replicas } = degrade
  return _jsxs('p', {
    class: 'switch',
    children: [
      _jsx('b', { class: 'mode', children: mode }),
      shadow && _jsx('span', { class: 'tag', children: 'shadow' }),
      _jsx('span', { class: 'reason', children: reason === '' ? 'no reason given' : reason }),
      _jsxs('span', {
        class: 'meta',
        children: [
          by !== '' && _jsxs(_Fragment, { children: ['by ', by, ' \u00B7 '] }),
          replicas !== undefined && _jsxs(_Fragment, { children: ['only at ', replicas.join(', '), ' \u00B7 '] }),
          since > 0 && _jsxs('span', { title: instant(since), children: ['for ', duration(now - since), ' \u00B7 '] }),
          expiresAt > 0
            ? _jsxs('span', { title: instant(expiresAt), children: ['ends in ', duration(expiresAt - now)] })
            : 'until it is switched off',
        ],
      }),
    ],
  })
}
