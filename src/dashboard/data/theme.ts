// Light or dark: as the system has it, unless somebody has chosen otherwise in this browser.

import { useLayoutEffect, useState } from 'preact/hooks'

export type Theme = 'auto' | 'light' | 'dark'
const THEMES: readonly Theme[] = ['auto', 'light', 'dark']
const KEY = 'portcullis-theme'

/** The theme, and what switches to the next one. */
export function useTheme(): readonly [Theme, () => void] {
  const [theme, setTheme] = useState<Theme>(readTheme)
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

function readTheme(): Theme {
  try {
    const kept = localStorage.getItem(KEY)
    return THEMES.find((theme) => theme === kept) ?? 'auto'
  } catch {
    return 'auto'
  }
}
