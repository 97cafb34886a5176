"""What the HTTP port answers: a front page, health, metrics."""

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from pocketmq import __version__
from pocketmq.http.metrics import BrokerCollector, NameServerCollector

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker
    from pocketmq.namesrv.server import NameServer

_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>PocketMQ</title>
<style>body{{font:16px/1.5 system-ui;margin:3rem auto;max-width:40rem}}</style>
<h1>PocketMQ {version}</h1>
<p>This is the HTTP port of a message broker. RocketMQ clients use others: name server {namesrv}, broker {broker}.</p>
<ul><li><a href="/health/live">/health/live</a></li><li><a href="/health/ready">/health/ready</a></li>
<li><a href="/metrics">/metrics</a> (Prometheus)</li></ul></html>"""


def build_app(name_server: "NameServer | None", broker: "Broker | None") -> Starlette:
    """The application over the parts that run in this process."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    if name_server is not None:
        registry.register(NameServerCollector(name_server))
    if broker is not None:
        registry.register(BrokerCollector(broker))

    async def front_page(request: Request) -> Response:
        return HTMLResponse(
            _PAGE.format(
                version=__version__,
                namesrv=name_server.port if name_server else "elsewhere",
                broker=broker.port if broker else "elsewhere",
            )
        )

    async def live(request: Request) -> Response:
        return JSONResponse({"status": "live"})

    async def ready(request: Request) -> Response:
        problems = readiness_problems(broker)
        body = {"status": "not ready" if problems else "ready", "problems": problems}
        return JSONResponse(body, status_code=503 if problems else 200)

    async def metrics(request: Request) -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return Starlette(
        routes=[
            Route("/", front_page),
            Route("/health/live", live),
            Route("/health/ready", ready),
            Route("/metrics", metrics),
        ]
    )


def readiness_problems(broker: "Broker | None") -> list[str]:
    """Why this process should get no traffic now, one sentence each."""
    if broker is None:
        return []
    if not broker.running:
        return ["the broker is starting or stopping"]
    problems: list[str] = []
    if broker.log.refusal is not None:
        problems.append(broker.log.refusal.message)
    servers = broker.registration.servers
    if servers and not any(server.registered for server in servers):
        addresses = ", ".join(server.address for server in servers)
        problems.append(f"the broker is not registered with any name server ({addresses})")
    return problems
