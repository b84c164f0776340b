'use strict';
(() => {
  const NS = (document.querySelector('figure svg') || {}).namespaceURI;
  const hidden = new Set();
  const redraw = [];
  const strips = [];
  const el = (tag, cls, text) => {
    const e = document.createElement(tag);
    if (cls) e.className = cls;
    if (text !== undefined) e.textContent = text;
    return e;
  };
  const sv = (parent, tag, attrs, text) => {
    const e = document.createElementNS(NS, tag);
    for (const k in attrs) e.setAttribute(k, attrs[k]);
    if (text !== undefined) e.textContent = text;
    parent.appendChild(e);
    return e;
  };
  const fmt = v => {
    const a = Math.abs(v);
    if (a === 0) return '0';
    if (a >= 1e6 || 1e-4 > a) return v.toExponential(2);
    return String(+v.toPrecision(4));
  };
  // Round marks over a range: 1, 2 or 5 times a power of ten apart.
  const ticks = (from, to, count) => {
    const span = to - from;
    if (!(span > 0)) return [from];
    const power = Math.pow(10, Math.floor(Math.log10(span / count)));
    const step = [1, 2, 5, 10].map(m => m * power).find(s => s * 1.001 >= span / count);
    const out = [];
    for (let v = Math.ceil(from / step - 1e-9) * step; to + step * 1e-9 >= v; v += step) out.push(Math.abs(v) > step * 1e-9 ? v : 0);
    return out;
  };
  const decades = (from, to) => {
    const step = Math.max(1, Math.ceil((to - from) / 7));
    const out = [];
    for (let e = Math.ceil(from - 1e-9); to + 1e-9 >= e; e += step) out.push(e);
    return out.length > 1 ? out : ticks(from, to, 3);
  };
  const scale = (log, from, to, a, b) => {
    const t = v => log ? Math.log10(Math.max(v, 1e-300)) : v;
    return {
      at: v => a + (t(v) - from) / (to - from) * (b - a),
      inv: p => { const v = from + (p - a) / (b - a) * (to - from); return log ? Math.pow(10, v) : v; },
      marks: n => log ? decades(from, to).map(e => [Math.pow(10, e), fmt(Math.pow(10, e))]) : ticks(from, to, n).map(v => [v, fmt(v)]),
      from, to, log
    };
  };
  const extent = (values, log) => {
    let lo = Infinity, hi = -Infinity;
    for (const v of values) {
      if (log && !(v > 0)) continue;
      if (lo > v) lo = v;
      if (v > hi) hi = v;
    }
    if (!(hi >= lo)) return [0, 1];
    if (log) {
      lo = Math.floor(Math.log10(lo)); hi = Math.ceil(Math.log10(hi));
      return [lo, hi > lo ? hi : lo + 1];
    }
    const top = ticks(0, hi * 1.02 || 1, 5);
    const step = top.length > 1 ? top[1] - top[0] : 1;
    return [0, Math.ceil((hi || 1) / step - 1e-9) * step];
  };
  const nearest = (p, x) => {
    // Index of the point whose x is nearest; points lie by x.
    let lo = 0, hi = p.length / 2 - 1;
    while (hi > lo) { const mid = (lo + hi) >> 1; if (x > p[2 * mid]) lo = mid + 1; else hi = mid; }
    if (lo > 0 && Math.abs(x - p[2 * lo]) > Math.abs(p[2 * lo - 2] - x)) lo--;
    return lo;
  };
  const tipBox = parent => {
    const tip = el('div', 'tip');
    tip.hidden = true;
    parent.appendChild(tip);
    return (x, y, rows) => {
      if (!rows) { tip.hidden = true; return; }
      tip.replaceChildren(...rows.map(r => {
        const d = el('div', '', r[1]);
        if (r[0]) { const s = el('span', 'sw ' + r[0]); d.prepend(s); }
        return d;
      }));
      tip.hidden = false;
      const w = parent.clientWidth, t = tip.offsetWidth;
      tip.style.left = Math.max(0, Math.min(x + 14, w - t)) + 'px';
      tip.style.top = Math.max(0, y - tip.offsetHeight - 10) + 'px';
    };
  };

  const plane = (fig, d) => {
    const box = fig.querySelector('.chart');
    const off = new Set();
    let zoom = null;
    const legend = el('div', 'legend');
    d.lines.forEach((l, i) => {
      const b = el('button', 'key');
      b.type = 'button';
      b.append(el('span', 'sw b-l' + i % 10), document.createTextNode(l.n));
      b.setAttribute('aria-pressed', 'true');
      b.addEventListener('click', () => {
        if (off.has(i)) off.delete(i); else off.add(i);
        draw();
      });
      legend.append(b);
    });
    const reset = el('button', 'reset', 'reset zoom');
    reset.type = 'button';
    reset.hidden = true;
    reset.addEventListener('click', () => { zoom = null; draw(); });
    legend.append(reset);
    box.before(legend);
    box.replaceChildren();
    box.classList.add('live');
    const tip = tipBox(box);
    let X, Y, svg, cross, W, H, L = 58, R = 20, T = 26, B = 40;
    const shown = () => d.lines.map((l, i) => i).filter(i => !off.has(i) && !hidden.has(d.lines[i].v));
    const draw = () => {
      tip(0, 0, null);
      W = Math.max(300, Math.min(box.clientWidth || 680, 768));
      H = W > 500 ? 320 : 270;
      const on = shown();
      const xs = on.flatMap(i => d.lines[i].p.filter((v, k) => k % 2 === 0));
      const ys = on.flatMap(i => d.lines[i].p.filter((v, k) => k % 2 === 1));
      const ex = zoom ? zoom.x : extent(xs, d.x.log), ey = zoom ? zoom.y : extent(ys, d.y.log);
      X = scale(d.x.log, ex[0], ex[1], L, W - R);
      Y = scale(d.y.log, ey[0], ey[1], H - B, T);
      if (svg) svg.remove();
      svg = sv(box, 'svg', {viewBox: `0 0 ${W} ${H}`, width: W, height: H, role: 'img', 'aria-label': fig.dataset.about || ''});
      const clip = 'c' + fig.dataset.chart;
      sv(sv(svg, 'clipPath', {id: clip}), 'rect', {x: L, y: T - 2, width: W - L - R, height: H - B - T + 4});
      for (const [v, name] of X.marks(W > 500 ? 7 : 4)) {
        sv(svg, 'line', {x1: X.at(v), x2: X.at(v), y1: T, y2: H - B, class: 's-grid'});
        sv(svg, 'text', {x: X.at(v), y: H - B + 16, 'text-anchor': 'middle', class: 'ax'}, name);
      }
      for (const [v, name] of Y.marks(5)) {
        sv(svg, 'line', {x1: L, x2: W - R, y1: Y.at(v), y2: Y.at(v), class: 's-grid'});
        sv(svg, 'text', {x: L - 6, y: Y.at(v) + 4, 'text-anchor': 'end', class: 'ax'}, name);
      }
      sv(svg, 'text', {x: W - R, y: H - 7, 'text-anchor': 'end', class: 'ax'}, d.x.t);
      sv(svg, 'text', {x: 2, y: 12, class: 'ax'}, d.y.t);
      const g = sv(svg, 'g', {'clip-path': 'url(#' + clip + ')'});
      for (const i of on) {
        const l = d.lines[i], p = l.p;
        let path = '';
        if (l.m) {
          const r = p.length > 40 ? 1.3 : 4;
          for (let k = 0; p.length > k; k += 2) {
            const x = X.at(p[k]).toFixed(1), y = Y.at(p[k + 1]).toFixed(1);
            path += `M${x} ${y}m${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`;
          }
          sv(g, 'path', {d: path, class: 'f-l' + i % 10});
        } else {
          for (let k = 0; p.length > k; k += 2) path += (k ? 'L' : 'M') + X.at(p[k]).toFixed(1) + ' ' + Y.at(p[k + 1]).toFixed(1);
          sv(g, 'path', {d: path, class: 'ln s-l' + i % 10});
        }
      }
      cross = sv(svg, 'line', {y1: T, y2: H - B, x1: -9, x2: -9, class: 's-muted'});
      svg.addEventListener('pointermove', move);
      svg.addEventListener('pointerleave', () => { tip(0, 0, null); cross.setAttribute('x1', -9); cross.setAttribute('x2', -9); });
      svg.addEventListener('pointerdown', down);
      svg.addEventListener('dblclick', () => { zoom = null; draw(); });
      reset.hidden = !zoom;
      [...legend.querySelectorAll('.key')].forEach((b, i) => {
        b.setAttribute('aria-pressed', String(!off.has(i)));
        b.hidden = hidden.has(d.lines[i].v);
      });
    };
    const place = e => {
      const r = svg.getBoundingClientRect();
      return [(e.clientX - r.left) * W / r.width, (e.clientY - r.top) * H / r.height];
    };
    let drag = null, rect = null;
    const move = e => {
      const [x, y] = place(e);
      if (drag) {
        rect.setAttribute('x', Math.min(x, drag[0]));
        rect.setAttribute('width', Math.abs(x - drag[0]));
        return;
      }
      if (L > x || x > W - R) { tip(0, 0, null); return; }
      const v = X.inv(x);
      const rows = [];
      let mark = x;
      for (const i of shown()) {
        const l = d.lines[i];
        if (!l.p.length) continue;
        if (l.m) {
          let best = -1, far = 400;
          for (let k = 0; l.p.length > k; k += 2) {
            const dx = X.at(l.p[k]) - x, dy = Y.at(l.p[k + 1]) - y, s = dx * dx + dy * dy;
            if (far > s) { far = s; best = k; }
          }
          if (best >= 0) rows.push(['b-l' + i % 10, `${l.n}: ${fmt(l.p[best])} ${d.x.u}, ${fmt(l.p[best + 1])} ${d.y.u}`]);
        } else {
          const k = 2 * nearest(l.p, v);
          rows.push(['b-l' + i % 10, `${l.n}: ${fmt(l.p[k + 1])} ${d.y.u}`]);
        }
      }
      cross.setAttribute('x1', mark); cross.setAttribute('x2', mark);
      const head = [['', `${fmt(v)} ${d.x.u}`]];
      const many = rows.length > 12 ? rows.slice(0, 12).concat([['', `and ${rows.length - 12} more`]]) : rows;
      tip(x * svg.clientWidth / W, y * svg.clientHeight / H, head.concat(many));
    };
    const down = e => {
      if (e.pointerType === 'touch') return;
      drag = place(e);
      rect = sv(svg, 'rect', {x: drag[0], y: T, width: 0, height: H - B - T, class: 'sel'});
      const up = u => {
        window.removeEventListener('pointerup', up);
        const [x] = place(u), a = Math.max(L, Math.min(x, drag[0])), b = Math.min(W - R, Math.max(x, drag[0]));
        drag = null;
        rect.remove();
        if (b - a > 6) {
          const t = v => d.x.log ? Math.log10(v) : v;
          zoom = {x: [t(X.inv(a)), t(X.inv(b))], y: [Y.from, Y.to]};
          draw();
        }
      };
      window.addEventListener('pointerup', up);
      e.preventDefault();
    };
    redraw.push(draw);
    return draw;
  };

  const strip = (fig, d) => {
    // The recorded series is the same for all variants: only the first figure carries it.
    strips.push(d);
    d.panels.forEach((p, i) => { if (p.rec === null && strips[0].panels[i]) p.rec = strips[0].panels[i].rec; });
    const box = fig.querySelector('.panels');
    const reset = el('button', 'reset', 'reset zoom');
    reset.type = 'button';
    reset.hidden = true;
    box.before(reset);
    let from = 0, to = d.end || 1;
    reset.addEventListener('click', () => { from = 0; to = d.end || 1; draw(); });
    const L = 46, R = 12, T = 24, B = 20, H = 136;
    let cells = [];
    const draw = () => {
      cells = [];
      box.replaceChildren();
      box.classList.add('live');
      reset.hidden = from === 0 && to === (d.end || 1);
      for (const p of d.panels) {
        const cell = el('div', 'panel');
        box.append(cell);
        const W = Math.max(220, cell.clientWidth || 340);
        const big = (p.u === 'KiB' || p.u === 'KiB/s') && p.top >= 10240;
        const f = big ? 1024 : 1, u = big ? p.u.replace('KiB', 'MiB') : p.u;
        const X = scale(false, from, to, L, W - R), Y = scale(false, 0, (p.top / f || 1) * 1.05, H - B, T);
        const svg = sv(cell, 'svg', {viewBox: `0 0 ${W} ${H}`, width: W, height: H, role: 'img', 'aria-label': p.n + ': ' + p.about});
        const text = sv(svg, 'text', {x: 0, y: 13, class: 'pt'}, `${p.n} (${u})`);
        for (const [v, name] of X.marks(4)) sv(svg, 'text', {x: X.at(v), y: H - 5, 'text-anchor': 'middle', class: 'ax'}, name + ' s');
        for (const [v, name] of Y.marks(3)) {
          sv(svg, 'line', {x1: L, x2: W - R, y1: Y.at(v), y2: Y.at(v), class: 's-grid'});
          sv(svg, 'text', {x: L - 5, y: Y.at(v) + 4, 'text-anchor': 'end', class: 'ax'}, name);
        }
        const clip = 'c' + fig.dataset.chart + p.n;
        sv(sv(svg, 'clipPath', {id: clip}), 'rect', {x: L, y: T - 2, width: W - L - R, height: H - B - T + 4});
        const g = sv(svg, 'g', {'clip-path': 'url(#' + clip + ')'});
        const path = q => { let s = ''; for (let k = 0; q.length > k; k += 2) s += (k ? 'L' : 'M') + X.at(q[k]).toFixed(1) + ' ' + Y.at(q[k + 1] / f).toFixed(1); return s; };
        if (p.rec && p.rec.length) sv(g, 'path', {d: path(p.rec) + `L${X.at(p.rec[p.rec.length - 2]).toFixed(1)} ${H - B}L${X.at(p.rec[0]).toFixed(1)} ${H - B}Z`, class: 'f-rec area'});
        if (p.sim && p.sim.length) sv(g, 'path', {d: path(p.sim), class: 'ln s-sim'});
        const cross = sv(svg, 'line', {x1: -9, x2: -9, y1: T, y2: H - B, class: 's-muted'});
        cells.push({p, X, cross, text, f, u, W});
        let start = null;
        const at = e => { const r = svg.getBoundingClientRect(); return (e.clientX - r.left) * W / r.width; };
        svg.addEventListener('pointermove', e => show(X.inv(at(e))));
        svg.addEventListener('pointerleave', () => show(null));
        svg.addEventListener('pointerdown', e => { if (e.pointerType !== 'touch') { start = at(e); e.preventDefault(); } });
        svg.addEventListener('pointerup', e => {
          if (start === null) return;
          const a = Math.min(start, at(e)), b = Math.max(start, at(e));
          start = null;
          if (b - a > 6) { from = Math.max(0, X.inv(a)); to = Math.min(d.end || 1, X.inv(b)); draw(); }
        });
        svg.addEventListener('dblclick', () => { from = 0; to = d.end || 1; draw(); });
      }
    };
    const show = t => {
      for (const c of cells) {
        if (t === null || from > t || t > to) {
          c.cross.setAttribute('x1', -9); c.cross.setAttribute('x2', -9);
          c.text.textContent = `${c.p.n} (${c.u})`;
          continue;
        }
        c.cross.setAttribute('x1', c.X.at(t)); c.cross.setAttribute('x2', c.X.at(t));
        const value = q => q && q.length ? fmt(q[2 * nearest(q, t) + 1] / c.f) : null;
        const s = value(c.p.sim), r = value(c.p.rec);
        c.text.textContent = `${c.p.n} at ${fmt(t)} s: ${s === null ? '-' : s} ${c.u}` + (r === null ? '' : `, recorded ${r}`);
      }
    };
    redraw.push(draw);
    return draw;
  };

  const flame = (fig, d) => {
    const box = fig.querySelector('.chart');
    box.classList.add('live');
    const tip = tipBox(box);
    const rows = el('div', 'flame');
    let root = d.root, path = [];
    const draw = () => {
      tip(0, 0, null);
      rows.replaceChildren();
      const whole = path.length ? root.v : d.top || root.v;
      const depth = n => 1 + Math.max(0, ...n.c.map(depth));
      rows.style.height = (depth(root) + (path.length ? 1 : 0)) * 24 + 'px';
      const put = (n, from, level) => {
        const w = n.v / whole * 100;
        if (0.05 > w) return;
        const b = el('button', 'fl ' + (n.k === null ? 'b-rec' : 'b-k' + n.k), n.n);
        b.type = 'button';
        b.style.left = from / whole * 100 + '%';
        b.style.width = w + '%';
        b.style.top = level * 24 + 'px';
        const about = `${n.n}: ${fmt(n.v)} ${d.u}, ${fmt(n.v / root.v * 100)} % of ${root.n}`;
        b.setAttribute('aria-label', about);
        b.addEventListener('pointermove', e => { const r = box.getBoundingClientRect(); tip(e.clientX - r.left, e.clientY - r.top, [['', about]]); });
        b.addEventListener('pointerleave', () => tip(0, 0, null));
        b.addEventListener('click', () => {
          if (n === root && path.length) root = path.pop();
          else if (n !== root && n.c.length) { path.push(root); root = n; }
          tip(0, 0, null);
          draw();
        });
        rows.append(b);
        let at = from;
        for (const c of n.c) { put(c, at, level + 1); at += c.v; }
      };
      put(root, 0, 0);
      if (path.length) {
        const back = el('button', 'reset', 'back');
        back.type = 'button';
        back.style.top = depth(root) * 24 + 'px';
        back.style.position = 'absolute';
        back.addEventListener('click', () => { root = path.pop(); draw(); });
        rows.append(back);
      }
    };
    for (const s of box.querySelectorAll('svg')) s.remove();
    box.append(rows);
    return draw;
  };

  // A drawing of rows under each other: shared by bars and dots.
  const rowChart = (fig, d, top, paint) => {
    const box = fig.querySelector('.chart');
    box.replaceChildren();
    box.classList.add('live');
    const tip = tipBox(box);
    let svg;
    const ROW = 46, B = 28;
    const draw = () => {
      tip(0, 0, null);
      if (svg) svg.remove();
      const rows = d.rows.filter(r => !hidden.has(r.v));
      const W = Math.max(280, Math.min(box.clientWidth || 680, 768)), H = rows.length * ROW + B;
      svg = sv(box, 'svg', {viewBox: `0 0 ${W} ${H}`, width: W, height: H, role: 'img', 'aria-label': fig.dataset.about || ''});
      const ex = extent(top(rows), d.log);
      const X = scale(d.log, ex[0], ex[1], d.pad, W - (d.end || d.pad));
      const marks = X.marks(W > 500 ? 7 : 4);
      marks.forEach(([v, name], i) => {
        const last = i === marks.length - 1, x = X.at(v);
        sv(svg, 'line', {x1: x, x2: x, y1: 2, y2: H - B, class: 's-grid'});
        sv(svg, 'text', {x: last ? Math.min(x + 14, W) : x, y: H - B + 17, 'text-anchor': last ? 'end' : i === 0 && 20 > x ? 'start' : 'middle', class: 'ax'}, last ? `${name} ${d.u}` : name);
      });
      const say = (shape, rows) => {
        shape.addEventListener('pointermove', e => {
          const r = svg.getBoundingClientRect();
          tip((e.clientX - r.left) * svg.clientWidth / r.width, e.clientY - r.top, rows);
        });
        shape.addEventListener('pointerleave', () => tip(0, 0, null));
      };
      rows.forEach((r, i) => {
        sv(svg, 'text', {x: 0, y: i * ROW + 16, class: 'rl'}, r.n);
        paint(svg, r, i * ROW, X, W, say);
      });
    };
    redraw.push(draw);
    return draw;
  };

  const bars = (fig, d) => {
    const off = new Set();
    d.pad = 0; d.end = 72;
    const sum = r => r.p.reduce((a, v, i) => off.has(i) ? a : a + v, 0);
    const draw = rowChart(fig, d, rows => rows.map(sum), (svg, r, y, X, W, say) => {
      let at = 0;
      const total = sum(r);
      r.p.forEach((v, i) => {
        if (off.has(i) || !(v > 0)) return;
        const x = X.at(at), part = d.parts[i];
        at += v;
        const w = X.at(at) - x;
        if (0.3 > w) return;
        const box = sv(svg, 'rect', {x, y: y + 22, width: w, height: 18, class: 'f-k' + part.k});
        say(box, [['', r.n], ['b-k' + part.k, `${part.n}: ${fmt(v)} ${d.u}, ${fmt(v / total * 100)} %`]]);
      });
      sv(svg, 'text', {x: X.at(total) + 6, y: y + 35, class: 'ax'}, `${fmt(total)} ${d.u}`);
    });
    const legend = el('div', 'legend');
    d.parts.forEach((part, i) => {
      const b = el('button', 'key');
      b.type = 'button';
      b.append(el('span', 'sw b-k' + part.k), document.createTextNode(part.n));
      b.setAttribute('aria-pressed', 'true');
      b.addEventListener('click', () => {
        if (off.has(i)) off.delete(i); else off.add(i);
        b.setAttribute('aria-pressed', String(!off.has(i)));
        draw();
      });
      legend.append(b);
    });
    fig.querySelector('.chart').before(legend);
    return draw;
  };

  const dots = (fig, d) => {
    d.pad = 16;
    return rowChart(fig, d, rows => rows.flatMap(r => r.p.map(p => p[1])), (svg, r, y, X, W, say) => {
      const cls = r.rec ? 'rec' : 'sim', line = y + 26;
      const clamp = v => d.log ? Math.max(X.at(v), 16) : X.at(v);
      const points = r.p.map(([n, v]) => ({n, v, x: clamp(v)})).sort((a, b) => a.x - b.x);
      if (!points.length) return;
      const first = points[0], last = points[points.length - 1];
      sv(svg, 'line', {x1: first.x, x2: last.x, y1: line, y2: line, class: 'bar s-' + cls});
      const text = p => p.n ? `${p.n}: ${fmt(p.v)} ${d.u}` : `${fmt(p.v)} ${d.u}`;
      for (const p of points) {
        const c = sv(svg, 'circle', {cx: p.x, cy: line, r: 5, class: 'f-' + cls});
        // Points on top of each other answer together.
        const near = points.filter(q => 6 > Math.abs(q.x - p.x));
        say(c, [['', r.n]].concat(near.slice(0, 12).map(q => ['', text(q)])));
      }
      const put = (p, x, anchor, dy) => sv(svg, 'text', {x, y: line + dy, 'text-anchor': anchor, class: 'ax'}, p.n);
      if (d.log) {
        let free = -1e9;
        for (const p of points) {
          const half = p.n.length * 3.4;
          if (p.x - half > free && W >= p.x + half) { put(p, p.x, 'middle', 18); free = p.x + half + 4; }
        }
      } else {
        if (points.length > 1 && first.x - 9 > first.n.length * 6.6) put(first, first.x - 9, 'end', 4);
        if (W > last.x + 9 + last.n.length * 6.6) put(last, last.x + 9, 'start', 4);
      }
    });
  };

  const kinds = {plane, strips: strip, flame, bars, dots};
  const figures = [...document.querySelectorAll('figure[data-chart]')];
  for (const fig of figures) {
    const data = fig.querySelector('script[type="application/json"]');
    if (!data) continue;
    const d = JSON.parse(data.textContent);
    const draw = kinds[d.kind](fig, d);
    const details = fig.closest('details');
    // What is folded has no width yet.
    if (details) {
      details.addEventListener('toggle', () => { if (details.open) draw(); });
      addEventListener('beforeprint', () => { if (!details.open) draw(); });
    }
    if (!details || details.open) draw();
  }

  const bar = document.querySelector('.variants');
  if (bar) {
    bar.hidden = false;
    const apply = () => {
      for (const e of document.querySelectorAll('[data-v]')) e.hidden = hidden.has(+e.dataset.v);
      redraw.forEach(f => f());
    };
    for (const b of bar.querySelectorAll('input')) {
      b.addEventListener('change', () => {
        if (b.checked) hidden.delete(+b.value); else hidden.add(+b.value);
        apply();
      });
    }
  }
  let width = innerWidth;
  addEventListener('resize', () => {
    if (width === innerWidth) return;
    width = innerWidth;
    for (const t of document.querySelectorAll('.tip')) t.hidden = true;
    redraw.forEach(f => f());
  });
  document.documentElement.classList.add('js');
})();
