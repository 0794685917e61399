import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Fragment as _Fragment, jsx as _jsx, jsxs as _jsxs } from 'preact/jsx-runtime'
import { useRoute } from './data/route.ts'
import { ClusterView } from './views/cluster.tsx'
import { ExplainView } from './views/explain.tsx'
import { OverviewView } from './views/overview.tsx'
import { TapView } from './views/tap.tsx'

const TITLES = { overview: 'Overview', explain: 'Explain', tap: 'Tap' }
export function App() {
  const route = useRoute()
  const main = useRef(null)
  const place = route.view === 'cluster' ? route.name : TITLES[route.view]
  const first = useRef(true)
  useEffect(() => {
    document.title = `${place} · Portcullis`
    // A new view is read from its beginning, also by those who do not see it.
    if (!first.current) {
      main.current?.focus()
      scrollTo(0, 0)
    }
    first.current = false
  }, [place])
  const skip = (event) => {
    event.preventDefault()
    main.current?.focus()
  }
  return _jsxs(_Fragment, {
    children: [
      _jsx('a', { class: 'skip', href: '#main', onClick: skip, children: 'Skip to content' }),
      _jsx(Header, { route: route }),
      _jsx('main', { id: 'main', ref: main, tabIndex: -1, children: _jsx(View, { route: route }) }),
    ],
  })
}
function View({ route }) {
  switch (route.view) {
    case 'overview':
      return _jsx(OverviewView, {})
    case 'cluster':
      return _jsx(ClusterView, { name: route.name }, route.name)
    case 'explain':
      return _jsx(ExplainView, {})
    case 'tap':
      return _jsx(TapView, {})
  }
}
function Header({ route }) {
  const [theme, nextTheme] = useTheme()
  const link = (view, href) =>
    _jsx('a', { href: href, 'aria-current': route.view === view ? 'page' : undefined, children: TITLES[view] })
  return _jsxs('header', {
    class: 'top',
    children: [
      _jsxs('a', { class: 'brand', href: '#/', children: [_jsx(Mark, {}), 'Portcullis'] }),
      _jsxs('nav', {
        'aria-label': 'Views',
        children: [link('overview', '#/'), link('explain', '#/explain'), link('tap', '#/tap')],
      }),
      _jsxs('div', {
        class: 'tools',
        children: [
          _jsxs('button', {
            type: 'button',
            class: 'quiet',
            onClick: nextTheme,
            title: 'System, light or dark colours',
            children: ['Colours: ', theme],
          }),
          _jsx(LogOut, {}),
        ],
      }),
    ],
  })
}
/** Nothing where nobody has to log in, or a client certificate does it. */
function LogOut() {
  const [session, setSession] = useState()
  useEffect(() => {
    fetch('/api/v1/session', { cache: 'no-store' })
      .then(async (response) => {
        if (response.ok) setSession(await response.json())
      })
      .catch(() => undefined)
  }, [])
  if (session === undefined || session.user === '') return null
  return _jsxs(_Fragment, {
    children: [
      _jsx('span', { class: 'who', children: session.user }),
      session.canLogOut &&
        _jsx('form', {
          method: 'post',
          action: '/logout',
          class: 'logout',
          children: _jsx('button', { type: 'submit', class: 'quiet', children: 'Log out' }),
        }),
    ],
  })
}
function Mark() {
  return _jsx('svg', {
    class: 'mark',
    viewBox: '0 0 16 16',
    'aria-hidden': 'true',
    children: _jsx('path', { d: 'M2 14V7a6 6 0 0 1 12 0v7M5 2.5V14M8 1.5V14M11 2.5V14M2 7h12M2 10.5h12' }),
  })
}
const THEMES = ['auto', 'light', 'dark']
const KEY = 'portcullis-theme'
/** The theme, and what switches to the next one. */
function useTheme() {
  const [theme, setTheme] = useState(readTheme)
  useLayoutEffect(() => {
    document.documentElement.dataset['theme'] = theme
    try {
      localStorage.setItem(KEY, theme)
    } catch {
      // Storage is switched off: it is forgotten when the page closes.
    }
    // For charts, which draw with the colours of the moment.
    dispatchEvent(new Event('themechange'))
  }, [theme])
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? 'auto'
  return [theme, () => setTheme(next)]
}
function readTheme() {
  try {
    const kept = localStorage.getItem(KEY)
    return THEMES.find((theme) => theme === kept) ?? 'auto'
  } catch {
    return 'auto'
  }
}
