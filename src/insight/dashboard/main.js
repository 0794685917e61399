// The dashboard's first file: puts the page into the document.
import { render } from 'preact'
import { jsx as _jsx } from 'preact/jsx-runtime'
import { App } from './app.tsx'

const root = document.getElementById('app')
if (root !== null) render(_jsx(App, {}), root)
