import { render } from "preact";
import { Page } from "./app.tsx";
import { settle } from "./theme.ts";
import "uplot/dist/uPlot.min.css";
import "./style/tokens.css";
import "./style/shell.css";
import "./style/parts.css";
import "./style/views.css";

settle();
const place = document.getElementById("page");
if (place !== null) render(<Page />, place);
