"""The report page's style sheet: light and dark, from phone to desk, without any outside file."""

__all__ = ["CSS"]

CSS = """
:root{--bg:#fbfbfa;--card:#fff;--ink:#1c2024;--soft:#60676f;--line:#e2e4e7;--good:#1f7a4d;
--bad:#b3372b;--warn:#94660a;--fill:#3f7fb5;--track:#e9ecef;--whisker:#1c2024}
@media (prefers-color-scheme:dark){:root{--bg:#15181b;--card:#1d2125;--ink:#e6e8ea;--soft:#9aa2aa;
--line:#31373d;--good:#5cc08d;--bad:#ef8377;--warn:#dcb25a;--fill:#5c9bd1;--track:#2b3136;
--whisker:#e6e8ea}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:980px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:26px;line-height:1.25;margin:0 0 4px;font-weight:650;overflow-wrap:anywhere}
h2{font-size:18px;margin:38px 0 10px;font-weight:650}
h3{font-size:15px;margin:0 0 4px;font-weight:650;overflow-wrap:anywhere}
h3 span{font-weight:400}
p{margin:6px 0}
a{color:inherit;text-decoration-color:var(--soft);text-underline-offset:2px}
.soft{color:var(--soft)}
.good{color:var(--good)}.bad{color:var(--bad)}.warn{color:var(--warn)}
.head{display:flex;flex-wrap:wrap;gap:12px;margin:20px 0 0}
.fact{flex:1 1 150px;background:var(--card);border:1px solid var(--line);border-radius:10px;
padding:12px 14px;min-width:0}
.fact b{display:block;font-size:24px;line-height:1.2;font-weight:650;
font-variant-numeric:tabular-nums}
.fact span{color:var(--soft);font-size:13px}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px 16px;
margin:0 0 12px;min-width:0;overflow-x:auto}
.row{display:grid;grid-template-columns:minmax(150px,1.1fr) minmax(120px,2fr) 190px;gap:4px 16px;
align-items:center;padding:7px 0;border-top:1px solid var(--line)}
.row:first-child{border-top:0}
.row .name{overflow-wrap:anywhere}
.row .num{font-variant-numeric:tabular-nums;text-align:right}
.track{position:relative;height:12px;border-radius:6px;background:var(--track)}
.fill{position:absolute;inset:0 auto 0 0;border-radius:6px;background:var(--fill)}
.whisker{position:absolute;top:5px;height:2px;background:var(--whisker);opacity:.75}
.whisker:before,.whisker:after{content:"";position:absolute;top:-3px;width:2px;height:8px;
background:var(--whisker)}
.whisker:before{left:0}.whisker:after{right:0}
.chance{position:absolute;top:-4px;height:20px;border-left:2px dashed var(--warn)}
table{width:100%;border-collapse:collapse;font-variant-numeric:tabular-nums}
th{font-weight:600;color:var(--soft);font-size:13px;text-align:left}
th,td{padding:6px 10px 6px 0;border-top:1px solid var(--line);vertical-align:top}
td.long{overflow-wrap:anywhere}
tr:first-child>th{border-top:0}
td.r,th.r{text-align:right}
td.r{white-space:nowrap}
td.name{white-space:nowrap}
td:last-child,th:last-child{padding-right:0}
.frames{display:grid;grid-template-columns:repeat(auto-fill,minmax(190px,1fr));gap:10px;
margin:10px 0 0}
figure{margin:0;min-width:0}
figure img{display:block;width:100%;height:auto;border-radius:6px;border:1px solid var(--line)}
figcaption{font-size:12px;color:var(--soft);margin-top:3px}
code,pre{font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
code{overflow-wrap:anywhere}
pre{margin:8px 0;padding:10px 12px;background:var(--bg);border:1px solid var(--line);
border-radius:8px;white-space:pre-wrap;overflow-wrap:anywhere}
.word{white-space:nowrap}
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:3px 16px;margin:8px 0}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
:target{outline:2px solid var(--fill);outline-offset:3px;border-radius:8px}
@media (max-width:640px){main{padding:20px 14px 48px}h1{font-size:22px}.wide{display:none}
.row{grid-template-columns:minmax(0,1fr) auto;gap:3px 10px}
.row .bar{grid-column:1/3;grid-row:2}
.frames{grid-template-columns:repeat(2,minmax(0,1fr))}
dl{grid-template-columns:minmax(0,1fr)}dd{margin-bottom:5px}}
@media print{body{background:#fff}.card,.fact{break-inside:avoid}}
"""
