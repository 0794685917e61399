// The frame of every view: skip link, navigation, and a banner if the gateway is unreachable.

import type { VNode } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { type Route, useRoute } from './data/route.ts'
import { ClusterView } from './views/cluster.tsx'
import { ExplainView } from './views/explain.tsx'
import { OverviewView } from './views/overview.tsx'
import { TapView } from './views/tap.tsx'

interface Session {
  /** '' = no authentication required. */
  readonly user: string
  readonly canLogOut: boolean
}

const TITLES = { overview: 'Overview', explain: 'Explain', tap: 'Tap' } as const

export function App(): VNode {
  const route = useRoute()
  const main = useRef<HTMLElement>(null)
  const place = route.view === 'cluster' ? route.name : TITLES[route.view]
  const first = useRef(true)
  useEffect(() => {
    document.title = `${place} · Portcullis`
    // A new view starts at its top, also for screen readers.
    if (!first.current) {
      main.current?.focus()
      scrollTo(0, 0)
    }
    first.current = false
  }, [place])
  const skip = (event: Event): void => {
    event.preventDefault()
    main.current?.focus()
  }
  return (
    <>
      {/* biome-ignore lint/a11y/useValidAnchor: it leads to a place on the page, whose address the views have */}
      <a class="skip" href="#main" onClick={skip}>
        Skip to content
      </a>
      <Header route={route} />
      <main id="main" ref={main} tabIndex={-1}>
        <View route={route} />
      </main>
    </>
  )
}

function View({ route }: { readonly route: Route }): VNode {
  switch (route.view) {
    case 'overview':
      return <OverviewView />
    case 'cluster':
      return <ClusterView key={route.name} name={route.name} />
    case 'explain':
      return <ExplainView />
    case 'tap':
      return <TapView />
  }
}

function Header({ route }: { readonly route: Route }): VNode {
  const [theme, nextTheme] = useTheme()
  const link = (view: keyof typeof TITLES, href: string): VNode => (
    <a href={href} aria-current={route.view === view ? 'page' : undefined}>
      {TITLES[view]}
    </a>
  )
  return (
    <header class="top">
      <a class="brand" href="#/">
        <Mark />
        Portcullis
      </a>
      <nav aria-label="Views">
        {link('overview', '#/')}
        {link('explain', '#/explain')}
        {link('tap', '#/tap')}
      </nav>
      <div class="tools">
        <button type="button" class="quiet" onClick={nextTheme} title="System, light or dark colours">
          Colours: {theme}
        </button>
        <LogOut />
      </div>
    </header>
  )
}

/** Nothing if no login is required, or a client certificate does it. */
function LogOut(): VNode | null {
  const [session, setSession] = useState<Session | undefined>()
  useEffect(() => {
    fetch('/api/v1/session', { cache: 'no-store' })
      .then(async (response) => {
        if (response.ok) setSession((await response.json()) as Session)
      })
      .catch(() => undefined)
  }, [])
  if (session === undefined || session.user === '') return null
  return (
    <>
      <span class="who">{session.user}</span>
      {session.canLogOut && (
        <form method="post" action="/logout" class="logout">
          <button type="submit" class="quiet">
            Log out
          </button>
        </form>
      )}
    </>
  )
}

function Mark(): VNode {
  return (
    <svg class="mark" viewBox="0 0 16 16" aria-hidden="true">
      <path d="M2 14V7a6 6 0 0 1 12 0v7M5 2.5V14M8 1.5V14M11 2.5V14M2 7h12M2 10.5h12" />
    </svg>
  )
}

// Light or dark: follows the system, unless another theme was chosen in this browser.
type Theme = 'auto' | 'light' | 'dark'
const THEMES: readonly Theme[] = ['auto', 'light', 'dark']
const KEY = 'portcullis-theme'

/** The theme, and a function that switches to the next one. */
function useTheme(): readonly [Theme, () => void] {
  const [theme, setTheme] = useState<Theme>(readTheme)
  useLayoutEffect(() => {
    document.documentElement.dataset['theme'] = theme
    try {
      localStorage.setItem(KEY, theme)
    } catch {
      // Storage is disabled: the choice lasts until the page closes.
    }
    // For charts, which draw with the current colours.
    dispatchEvent(new Event('themechange'))
  }, [theme])
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? 'auto'
  return [theme, () => setTheme(next)]
}

function readTheme(): Theme {
  try {
    const kept = localStorage.getItem(KEY)
    return THEMES.find((theme) => theme === kept) ?? 'auto'
  } catch {
    return 'auto'
  }
}
