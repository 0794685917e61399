import { jsx as _jsx } from "preact/jsx-runtime";
// The dashboard's first file: puts the page into the document.
import { render } from 'preact';
import { App } from './app.tsx';
const root = document.getElementById('app');
if (root !== null)
    render(_jsx(App, {}), root);
